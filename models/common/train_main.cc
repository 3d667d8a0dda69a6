#include "models/common/train_main.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "memory/allocator.h"
#include "models/common/batch_reader.h"
#include "models/common/dataset_choice.h"
#include "models/common/progress.h"
#include "models/common/trainer.h"

DEFINE_string(data, "generated",
              "What to train on: generated (digits drawn by the program itself), mnist:DIR (IDX "
              "files, plain or .gz), cifar10:DIR or cifar100:DIR (binary version).");
DEFINE_int64(limit_samples, 0,
             "Training images to use, the first ones; how many to draw of generated ones. 0: all, "
             "or as many generated ones as suit the model.");
DEFINE_int64(validation_samples, 0,
             "Images to validate on. 0: 500 generated ones, the last 5000 of MNIST's training "
             "set (always held back from training), all of CIFAR's test images.");
DEFINE_string(augment, "auto",
              "Random changes of training images: none, crop, crop_flip, or auto (crop_flip for "
              "CIFAR, none elsewhere).");
DEFINE_int64(batch_size, 64, "Images in a step.");
DEFINE_int64(epochs, 5, "How often to go over the training images.");
DEFINE_string(optimizer, "momentum", "momentum (0.9), adam or sgd.");
DEFINE_double(learning_rate, 0.1, "Where the schedule starts, after the warm-up.");
DEFINE_string(schedule, "cosine",
              "constant, cosine (to 0 at the end), or step (a tenth after half of the steps, a "
              "hundredth after three quarters).");
DEFINE_int64(warmup, 0, "Steps over which the learning rate grows linearly.");
DEFINE_double(weight_decay, 1e-4, "L2 regularization of all parameters.");
DEFINE_string(model_average, "none",
              "What is kept beside the weights, validated as well, and saved as the model: none, "
              "window (the mean of the last weights), or ema (a mean in which older ones count "
              "less). Running statistics of batch normalisation are averaged, too.");
DEFINE_double(average_window, 0.15,
              "With --model_average=window: the mean is that of this share of the steps so far, or "
              "of up to twice as many.");
DEFINE_double(ema_decay, 0.999,
              "With --model_average=ema: what a mean keeps of itself in a step, below 1.");
DEFINE_uint64(seed, 1, "Of initial weights, shuffling, augmentation and generated images.");
DEFINE_int32(threads, 0, "Threads that compute. 0: one a core.");
DEFINE_string(recompute, "nothing",
              "What is computed again in the backward pass to save memory: nothing, cheap_ops, "
              "budget (as little as --budget_bytes takes) or least_memory. Results stay the same.");
DEFINE_int64(budget_bytes, 0, "With --recompute=budget: what activations and gradients may take.");
DEFINE_bool(
    fuse_optimizer, false,
    "One op updates all parameters of a kind, with clipping and weight decay in it. Results "
    "stay the same.");
DEFINE_bool(
    flatten_parameters, false,
    "Parameters, optimizer states and gradients lie in flat buffers. Results stay the same.");
DEFINE_int64(
    memory_limit_bytes, 0,
    "Most memory that is taken for tensors; beyond it the training ends with an error that "
    "says what takes it. 0: no limit.");
DEFINE_string(
    tune_kernels, "",
    "File that remembers which kernels and layouts are fastest on this machine; made if it "
    "isn't there. Kernels that it doesn't know are timed first, a fraction of a second each. "
    "Empty: by rule. A resumed training keeps those it began with.");
DEFINE_string(
    output_dir, "",
    "Where to write. Empty: MODEL_run in the current directory. One that holds a training is "
    "refused without --resume.");
DEFINE_int64(save_every, 0, "Steps between two checkpoints, besides that of each epoch's end.");
DEFINE_int64(early_stop, 0,
             "Ends the training after so many epochs without a better validation accuracy. 0: "
             "never. A training that ended so goes on if it is resumed with a larger number, or "
             "0.");
DEFINE_int64(stop_after, 0,
             "Saves and stops after so many steps, as Ctrl-C does; --resume goes on. 0: never.");
DEFINE_bool(resume, false, "Goes on from the newest checkpoint of the output directory.");
DEFINE_bool(evaluate_only, false,
            "Validates the newest checkpoint of the output directory and trains nothing.");

namespace skiff::models {
namespace {

// These decide what a training computes, so a resumed one must have the same.
constexpr const char* kFixedFlags[] = {
    "data",      "limit_samples", "validation_samples", "augment", "batch_size",   "epochs",
    "optimizer", "learning_rate", "schedule",           "warmup",  "weight_decay", "seed"};

// And these, if anything is averaged.
constexpr const char* kAveragingFlags[] = {"model_average", "average_window", "ema_decay"};

std::string FlagValue(const std::string& name) {
  std::string value;
  SKIFF_ENFORCE(gflags::GetCommandLineOption(name.c_str(), &value), kNotFound,
                "there is no flag --", name);
  return value;
}

std::map<std::string, std::string> Configuration(const TrainableModel& model) {
  std::map<std::string, std::string> result;
  for (const char* name : kFixedFlags) result[name] = FlagValue(name);
  for (const std::string& name : model.network_flags) result[name] = FlagValue(name);
  if (FLAGS_model_average != "none") {
    for (const char* name : kAveragingFlags) result[name] = FlagValue(name);
  }
  return result;
}

// What a user types, wherever the build has put this program.
std::string CommandOf(const TrainableModel& model) { return "tools/train.sh " + model.name; }

// Not the default directory, where a first training lies.
std::string Examples(const TrainableModel& model) {
  std::string lines;
  int number = 1;
  for (const std::string& flags : model.try_next) {
    lines += StrCat("  ", CommandOf(model), " ", flags, " --output_dir=", model.name, "_run_",
                    ++number, "\n");
  }
  return lines;
}

std::string OutputDirectory(const TrainableModel& model) {
  return FLAGS_output_dir.empty() ? model.name + "_run" : FLAGS_output_dir;
}

OptimizationOptions Optimization(int64_t batches_per_epoch) {
  return {.optimizer = OptimizerKindFromName(FLAGS_optimizer),
          .learning_rate = static_cast<float>(FLAGS_learning_rate),
          .schedule = ScheduleKindFromName(FLAGS_schedule),
          .total_steps = FLAGS_epochs * batches_per_epoch,
          .warmup_steps = FLAGS_warmup,
          .weight_decay = static_cast<float>(FLAGS_weight_decay),
          .averaging = AveragingKindFromName(FLAGS_model_average),
          .average_window = static_cast<float>(FLAGS_average_window),
          .ema_decay = static_cast<float>(FLAGS_ema_decay)};
}

std::string WithResume(const TrainableModel& model, const std::vector<std::string>& flags) {
  // Flags may be written -name, --name, --name=value and --name value. A bound of this run only
  // would stop the next one at once.
  std::vector<std::string> kept;
  for (size_t i = 0; i < flags.size(); ++i) {
    std::string name = flags[i].substr(0, flags[i].find('='));
    name.erase(0, std::min<size_t>(name.find_first_not_of('-'), 2));
    const bool is_flag = flags[i].starts_with("-");
    if (is_flag && name == "resume") continue;
    if (is_flag && name == "stop_after") {
      if (flags[i].find('=') == std::string::npos) ++i;
      continue;
    }
    kept.push_back(flags[i]);
  }
  kept.push_back("--resume");
  return CommandOf(model) + " " + ShellCommand(kept);
}

void PrintResult(const TrainingResult& result, const std::string& output_dir,
                 const std::vector<std::string>& flags, const TrainableModel& model) {
  std::cout << "weights " << result.weights_hash << "\n";
  if (!result.finished) {
    std::cout << "stopped and saved; go on with:\n  " << WithResume(model, flags) << "\n";
    return;
  }
  std::cout << "best validation accuracy " << 100 * result.best_accuracy << " % in epoch "
            << result.best_epoch << "\n"
            << "written: " << output_dir << "/model ("
            << (FLAGS_model_average == "none" ? "" : "averaged ") << "weights of that epoch), "
            << output_dir << "/learning_curve.svg, " << output_dir << "/training_log.jsonl\n"
            << "try next:\n"
            << Examples(model);
}

std::shared_ptr<KernelTuner> TunerFromFlags() {
  if (FLAGS_tune_kernels.empty()) return nullptr;
  return std::make_shared<KernelTuner>(
      DefaultOpRegistry(),
      KernelTunerOptions{
          .cache_file = FLAGS_tune_kernels,
          .warn = [](const std::string& message) { std::cout << "warning: " << message << "\n"; },
          .log = [](const std::string& line) { std::cout << "tuning: " << line << std::endl; }});
}

MemoryOptions MemoryFromFlags() {
  MemoryOptions memory;
  memory.recompute = ParseRecompute(FLAGS_recompute);
  memory.budget_bytes = FLAGS_budget_bytes;
  return memory;
}

int Train(const std::vector<std::string>& flags, const TrainableModel& model) {
  SKIFF_ENFORCE(FLAGS_threads >= 0, kInvalidArgument, "threads = ", FLAGS_threads,
                ": expected no negative number");
  SKIFF_ENFORCE(FLAGS_epochs >= 1, kInvalidArgument, "epochs = ", FLAGS_epochs,
                ": expected at least 1");
  SKIFF_ENFORCE(FLAGS_stop_after >= 0, kInvalidArgument, "stop_after = ", FLAGS_stop_after,
                ": expected no negative number");
  if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
  AllocatorOf(Place::Cpu()).SetLimit(FLAGS_memory_limit_bytes);

  const DatasetPair data = LoadDatasets({.data = FLAGS_data,
                                         .limit_samples = FLAGS_limit_samples,
                                         .validation_samples = FLAGS_validation_samples,
                                         .generated_samples = model.generated_samples,
                                         .channels = model.channels,
                                         .height = model.height,
                                         .width = model.width,
                                         .seed = FLAGS_seed});
  const Normalization normalization = MeasureNormalization(data.train);
  const ImageSource train_source(&data.train, normalization,
                                 AugmentationFromName(FLAGS_augment, FLAGS_data), FLAGS_seed);
  const ImageSource validation_source(&data.validation, normalization);
  BatchReader train(
      &train_source,
      {.batch_size = FLAGS_batch_size, .shuffle = true, .drop_last = true, .seed = FLAGS_seed});
  BatchReader validation(&validation_source, {.batch_size = FLAGS_batch_size});

  const ClassifierProgram program = BuildClassifier(
      data.train, model.logits, Optimization(train.batches_per_epoch()), FLAGS_seed);
  const std::string output_dir = OutputDirectory(model);
  const std::string title = model.title() + " on " + data.train.name + " images";
  std::cout << title << ": " << data.train.size() << " to train, " << data.validation.size()
            << " to validate, " << FLAGS_epochs << " epochs of " << train.batches_per_epoch()
            << " steps, " << omp_get_max_threads() << " threads, output in " << output_dir
            << std::endl;
  Trainer trainer(&program, &train, &validation,
                  {.title = title,
                   .output_dir = output_dir,
                   .epochs = FLAGS_epochs,
                   .save_every_steps = FLAGS_save_every,
                   .early_stop_epochs = FLAGS_early_stop,
                   .stop_after_steps = FLAGS_stop_after,
                   .configuration = Configuration(model),
                   .is_terminal = StdoutIsTerminal(),
                   .tuner = TunerFromFlags(),
                   .memory = MemoryFromFlags(),
                   .fuse_optimizer = FLAGS_fuse_optimizer,
                   .flatten_parameters = FLAGS_flatten_parameters},
                  &std::cout);
  if (FLAGS_evaluate_only) {
    trainer.LoadForEvaluation();
    const EvaluationResult result = trainer.Evaluate();
    std::cout << "validation loss " << result.loss << "  accuracy " << 100 * result.accuracy
              << " %\n";
    if (const std::optional<EvaluationResult> averaged = trainer.EvaluateAveraged()) {
      std::cout << "with averaged weights: validation loss " << averaged->loss << "  accuracy "
                << 100 * averaged->accuracy << " %\n";
    }
    std::cout << "weights " << trainer.WeightsHash() << "\n";
    return 0;
  }
  if (FLAGS_resume) trainer.Resume();
  const TrainingResult result = trainer.Run();
  PrintResult(result, output_dir, flags, model);
  constexpr int kSignalStatus = 128;
  return result.signal == 0 ? 0 : kSignalStatus + result.signal;
}

}  // namespace

int TrainMain(int argc, char** argv, const TrainableModel& model) {
  return CommandMain(argc, argv,
                     {.usage = CommandOf(model) + " [flags]",
                      .summary = model.summary,
                      .run =
                          [&] {
                            return Train({argv + 1, argv + argc}, model);
                          },
                      .epilogue = [&] { return "For example:\n" + Examples(model); },
                      .flag_defaults = model.flag_defaults});
}

}  // namespace skiff::models
