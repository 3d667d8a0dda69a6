// Flags become a TrainingTask (by the model) and TrainerOptions; training::Trainer does the rest.
// Only this file reads the common flags: libraries get option structs.
#include "models/common/train_main.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/base/parallel.h"
#include "framework/comm/rank_resources.h"
#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file_contents.h"
#include "framework/io/read_files.h"
#include "framework/training/progress.h"
#include "framework/training/rank_log.h"
#include "framework/training/trainer.h"
#include "framework/tuning/kernel_tuner.h"
#include "memory/places.h"
#include "models/common/data_contents.h"
#include "models/common/rank_flags.h"
#include "models/common/rank_setup.h"

DEFINE_int64(batch_size, 64, "Samples in a step, of each rank.");
DEFINE_int64(epochs, 5, "Passes over the training samples.");
DEFINE_string(optimizer, "momentum",
              "adadelta, adagrad, adam, adamax, adamw, decayed_adagrad, ftrl, lamb, lars_momentum, "
              "momentum, rmsprop or sgd.");
DEFINE_string(
    optimizer_options, "",
    "Settings of the optimizer, with commas between them: --optimizer=adamw "
    "--optimizer_options=beta2=0.95,epsilon=1e-6. docs/training.md lists them; on and off "
    "are 1 and 0.");
DEFINE_double(learning_rate, 0.1, "Where the schedule starts, after the warm-up.");
DEFINE_string(schedule, "cosine",
              "constant, cosine or linear (to 0 at the end), or step (a tenth after half of the "
              "updates, a hundredth after three quarters).");
DEFINE_int64(warmup, 0,
             "Updates over which the learning rate grows linearly. -1: a tenth of all updates.");
DEFINE_int64(gradient_merge, 1,
             "Steps that make one update, by the mean of their gradients (gradient accumulation): "
             "as a batch so many times as large, in the memory of a small one.");
DEFINE_bool(skip_non_finite, false,
            "Leaves out an update if a gradient is infinite or not a number.");
DEFINE_double(weight_decay, 1e-4,
              "The weight decay of adamw, lamb and lars_momentum; L2 regularization of all "
              "parameters with the other optimizers.");
DEFINE_string(exclude_from_decay, "",
              "Parts of names, with commas between them: parameters that don't decay, such as "
              ".b_,batch_norm. For adamw, lamb and lars_momentum.");
DEFINE_double(
    clip_norm, 0.0,
    "Gradients are scaled down together to this L2 norm where theirs is larger. 0: never.");
DEFINE_string(model_average, "none",
              "The average of the weights to keep, to validate as well, and to save as the model: "
              "none, window (the mean of the last weights), or ema (a mean in which older ones "
              "count less). Running statistics of batch normalisation are averaged, too.");
DEFINE_double(average_window, 0.15,
              "With --model_average=window: the mean is that of this share of the steps so far, or "
              "of up to twice as many.");
DEFINE_double(ema_decay, 0.999,
              "With --model_average=ema: what a mean keeps of itself in a step, below 1.");
DEFINE_string(precision, "float32",
              "What products, convolutions and activations compute in: float32, bfloat16, or "
              "float16. Losses, statistics of norms, means and sums over axes stay float32, and so "
              "do the weights that an optimizer updates.");
DEFINE_string(precision_level, "parameters",
              "With --precision: parameters (those that such ops alone read are kept in it, too, "
              "beside their float32 weights), or casts (parameters stay float32, and each step "
              "rounds them).");
DEFINE_string(loss_scale, "auto",
              "With --precision: by what the loss is multiplied before its gradients are computed, "
              "so that small ones don't vanish: auto (dynamic for float16, nothing for bfloat16), "
              "dynamic (from 65536 on; half of it after a gradient that overflows, twice after "
              "2000 updates without), or a number that stays, such as 1 for nothing.");
DEFINE_string(keep_float32, "",
              "With --precision or --save_precision: what stays float32 nevertheless, with commas "
              "between: types of ops, such as softmax, and parts of name scopes or of parameters' "
              "names, such as decoder_.");
DEFINE_string(save_precision, "float32",
              "What the saved model computes and is stored in, whatever --precision is: float32, "
              "bfloat16 or float16. Its outputs are float32.");
DEFINE_uint64(seed, 1, "Of initial weights, shuffling, augmentation and generated data.");
DEFINE_int64(global_batch, 0,
             "Samples that make one update, over all ranks: --gradient_merge becomes this number "
             "divided by --batch_size and by the number of ranks, which must be a whole number. A "
             "training can then be resumed with another number of ranks. 0: --batch_size times "
             "--gradient_merge times the number of ranks.");
DEFINE_int32(
    threads, 0,
    "Threads that compute, of each rank. 0: as many as OMP_NUM_THREADS says; if that isn't "
    "set, one per core. Several ranks share the cores of their host, and a rank that the launcher "
    "has bound to fewer takes these; all ranks take as many as the one with the fewest.");
DEFINE_string(
    place, "cpu",
    "Where to train: cpu, cuda, or cuda:1 for the second of several devices. With several ranks "
    "on a machine, cuda is another device for each.");
DEFINE_string(recompute, "almost_free",
              "Activations to compute again in the backward pass, to save memory: nothing, "
              "almost_free (what takes at most 2 % of a step, by estimate), cheap_ops, budget (as "
              "few as --budget_bytes allows) or least_memory. Results stay the same.");
DEFINE_int64(budget_bytes, 0,
             "With --recompute=budget: the most bytes of the arena, which holds activations, "
             "gradients and workspaces.");
DEFINE_string(
    passes, "",
    "Changes to the passes that run, with commas between them: -layout leaves a pass out, "
    "+fuse_optimizer (one op updates all parameters of a kind, with clipping and weight "
    "decay in it; on a device by default) and +flatten_parameters (parameters, optimizer states "
    "and gradients are in flat buffers) run passes that don't run by default.");
DEFINE_string(math, "full",
              "On a device: how products and convolutions of float32 compute. full: in float32. "
              "tf32: NVIDIA's libraries may round factors to TF32, ten bits after the point, which "
              "is faster. On the CPU it changes nothing. A resumed training keeps it.");
DEFINE_bool(graphs, true,
            "On a device: launch stretches of a step as graphs, which costs the host less. Not for "
            "ragged batches. The results are the same.");
DEFINE_int64(
    memory_limit_bytes, 0,
    "The most memory for tensors. A training that needs more ends with an error that lists what "
    "uses it. 0: no limit.");
DEFINE_string(
    tune_kernels, "",
    "File that remembers which kernels are fastest on this machine; made if it "
    "isn't there. Kernels that it doesn't know are timed first, a fraction of a second each. "
    "Empty: by rule. A resumed training keeps those it began with.");
DEFINE_string(
    output_dir, "",
    "Where to write. Empty: MODEL_run in the current directory. One that holds a training is "
    "refused without --resume.");
DEFINE_string(initial_model, "",
              "Directory of a saved model, such as another training's OUTPUT_DIR/model, or of "
              "checkpoints (OUTPUT_DIR/checkpoints), or a .safetensors file: parameters of the "
              "same names begin with its values, in whatever precision they are. Empty: all begin "
              "at random.");
DEFINE_int64(save_every, 0,
             "Steps, those of all ranks together, between two checkpoints, besides that of each "
             "epoch's end.");
DEFINE_int64(early_stop, 0,
             "Ends the training after this many epochs without a better validation value. 0: "
             "never. Such a training continues if it is resumed with a larger number, or 0.");
DEFINE_int64(
    stop_after, 0,
    "Saves and stops after this many steps, those of all ranks together, as Ctrl-C does; --resume "
    "continues. 0: never. (Ctrl-C on mpirun: docs/data_parallel.md.)");
DEFINE_bool(resume, false, "Continues from the newest checkpoint of the output directory.");
DEFINE_bool(evaluate_only, false,
            "Validates the newest checkpoint of the output directory and trains nothing.");

namespace skiff::models {
namespace {

// Flags that decide what a training computes, so a resumed one must have the same values. Threads,
// passes and recomputation aren't among them: they change no result, or only its rounding.
constexpr const char* kFixedFlags[] = {"batch_size",
                                       "clip_norm",
                                       "epochs",
                                       "exclude_from_decay",
                                       "gradient_merge",
                                       "keep_float32",
                                       "learning_rate",
                                       "loss_scale",
                                       "math",
                                       "optimizer",
                                       "optimizer_options",
                                       "precision",
                                       "precision_level",
                                       "schedule",
                                       "seed",
                                       "skip_non_finite",
                                       "warmup",
                                       "weight_decay"};

// Those among them that earlier versions didn't have, with the values that reproduce these.
const std::map<std::string, std::string> kEarlierSettings = {{"keep_float32", ""},
                                                             {"loss_scale", "auto"},
                                                             {"math", "full"},
                                                             {"precision", "float32"},
                                                             {"precision_level", "parameters"},
                                                             {"sync_batch_norm", "off"}};

// And these, if anything is averaged.
constexpr const char* kAveragingFlags[] = {"model_average", "average_window", "ema_decay"};

std::string FlagValue(const std::string& name) {
  std::string value;
  SKIFF_ENFORCE(gflags::GetCommandLineOption(name.c_str(), &value), kNotFound,
                "there is no flag --", name);
  return value;
}

struct CommandLine {
  std::string program;
  std::vector<std::string> flags;
};

struct Settings {
  std::map<std::string, std::string> configuration;
  std::map<std::string, training::FileSetting> files;
};

// The ranks, and how many steps of a rank make an update.
struct Sharing {
  Communicator* ranks = nullptr;
  World world = {};
  int64_t merged_steps = 1;
};

Sharing SharingFromFlags(Communicator* ranks) {
  const World world = WorldOf(ranks);
  SKIFF_ENFORCE(FLAGS_global_batch >= 0, kInvalidArgument, "global_batch = ", FLAGS_global_batch,
                ": expected no negative number");
  if (FLAGS_global_batch == 0) return {ranks, world, FLAGS_gradient_merge};
  RefuseFlags({"gradient_merge"}, "--global_batch says how many steps are merged");
  return {ranks, world, MergedSteps(FLAGS_global_batch, FLAGS_batch_size, world.size)};
}

// Returns what a continuation must have as well. `read`: the files that the task was made from.
Settings FixedSettings(const TrainableModel& model, const TrainingTask& task,
                       const std::vector<FileContents>& read, const Sharing& sharing) {
  Settings settings{.configuration = task.configuration, .files = {}};
  for (const char* name : kFixedFlags) settings.configuration[name] = FlagValue(name);
  if (sharing.ranks != nullptr || FLAGS_global_batch > 0) {
    // How ranks and merged steps share the batch may change.
    settings.configuration.erase("gradient_merge");
    settings.configuration["global_batch"] =
        StrCat(FLAGS_batch_size * sharing.merged_steps * sharing.world.size);
  }
  // Another number of ranks would make other batches for the norms.
  settings.configuration["sync_batch_norm"] =
      FLAGS_sync_batch_norm ? StrCat("over ", sharing.world.size, " ranks") : "off";
  for (const std::string& name : model.fixed_flags) {
    const std::string value = FlagValue(name);
    if (std::optional<training::FileSetting> files = DataContents(value, read)) {
      settings.files[name] = *std::move(files);
    } else {
      settings.configuration[name] = value;
    }
  }
  if (FLAGS_model_average != "none") {
    for (const char* name : kAveragingFlags) settings.configuration[name] = FlagValue(name);
  }
  return settings;
}

// The command that a user types, wherever the build has put this program.
std::string CommandOf(const TrainableModel& model) {
  return model.command.empty() ? "tools/train.sh " + model.name : model.command;
}

// A title and the examples; nothing if there are none. Each has an output directory of its own,
// since the default one holds this training.
std::string Examples(const std::string& title, const TrainableModel& model) {
  std::string lines = model.try_next.empty() ? "" : title + "\n";
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

// "beta1=0.9,beta2=0.95"
std::map<std::string, double> NumbersByName(const std::string& text) {
  std::map<std::string, double> numbers;
  for (const std::string& entry : SplitNames(text)) {
    const size_t equals = entry.find('=');
    const std::optional<double> number =
        equals == std::string::npos
            ? std::nullopt
            : ParseNumber<double>(std::string_view(entry).substr(equals + 1));
    SKIFF_ENFORCE(number.has_value(), kInvalidArgument, "optimizer_options \"", entry,
                  "\": expected a name, an equals sign and a number");
    const bool is_new = numbers.emplace(entry.substr(0, equals), *number).second;
    SKIFF_ENFORCE(is_new, kInvalidArgument, "optimizer_options name ", entry.substr(0, equals),
                  " twice");
  }
  return numbers;
}

training::OptimizationOptions OptimizationFromFlags(int64_t merged_steps) {
  return {.optimizer = FLAGS_optimizer,
          .optimizer_options = NumbersByName(FLAGS_optimizer_options),
          .learning_rate = static_cast<float>(FLAGS_learning_rate),
          .schedule = training::ScheduleKindFromName(FLAGS_schedule),
          .gradient_merge_steps = merged_steps,
          .skip_non_finite = FLAGS_skip_non_finite,
          .warmup_updates = FLAGS_warmup,
          .weight_decay = static_cast<float>(FLAGS_weight_decay),
          .exclude_from_decay = SplitNames(FLAGS_exclude_from_decay),
          .clip_norm = static_cast<float>(FLAGS_clip_norm),
          .averaging = training::AveragingKindFromName(FLAGS_model_average),
          .average_window = static_cast<float>(FLAGS_average_window),
          .ema_decay = static_cast<float>(FLAGS_ema_decay),
          .precision = {.dtype = training::PrecisionFromName("precision", FLAGS_precision),
                        .level = training::PrecisionLevelFromName(FLAGS_precision_level),
                        .keep_float32 = SplitNames(FLAGS_keep_float32),
                        .loss_scaling = training::LossScalingFromText(FLAGS_loss_scale)}};
}

// Returns how to continue this training: the command with the same flags, plus --resume, less
// --stop_after, which would stop the next run immediately.
std::string WithResume(const std::string& command, const std::vector<std::string>& flags) {
  // gflags accepts -name, --name, --name=value and --name value.
  std::vector<std::string> kept;
  for (size_t i = 0; i < flags.size(); ++i) {
    std::string name = flags[i].substr(0, flags[i].find('='));
    name.erase(0, std::min<size_t>(name.find_first_not_of('-'), 2));
    const bool is_flag = flags[i].starts_with("-");
    if (is_flag && name == "resume") continue;
    if (is_flag && name == "stop_after") {
      // Without an equals sign, the next argument is the value.
      if (flags[i].find('=') == std::string::npos) ++i;
      continue;
    }
    kept.push_back(flags[i]);
  }
  kept.push_back("--resume");
  return command + " " + ShellCommand(kept);
}

std::string ShortText(const training::Metric& metric, double value) {
  return metric.percent ? StrCat(100 * value, " %") : StrCat(value);
}

std::string ShortText(const training::TrainingProgram& program,
                      const training::MetricValues& values) {
  std::string text = "loss " + StrCat(values.at("loss"));
  for (const training::Metric& metric : program.metrics) {
    if (!values.contains(metric.name)) continue;
    text += StrCat("  ", metric.name, " ", ShortText(metric, values.at(metric.name)));
  }
  return text;
}

void PrintResult(const training::TrainingResult& result, const std::string& output_dir,
                 const std::string& how_to_resume, const TrainableModel& model,
                 const std::string& baselines) {
  std::cout << "weights " << result.weights_hash << "\n";
  if (!result.finished) {
    std::cout << "stopped and saved; " << how_to_resume << "\n";
    return;
  }
  const training::Metric& metric = result.decisive_metric;
  std::cout << "best validation " << metric.name << " " << ShortText(metric, result.best_value)
            << " in epoch " << result.best_epoch << (baselines.empty() ? "" : "; " + baselines)
            << "\n"
            << "written: " << output_dir << "/model ("
            << (FLAGS_model_average == "none"
                    ? "weights of that epoch), "
                    : "averaged weights of that epoch; unaveraged_model has the weights "
                      "themselves), ")
            << output_dir << "/learning_curve.svg, " << output_dir << "/training_log.jsonl\n"
            << Examples("try next:", model);
}

std::shared_ptr<KernelTuner> TunerFromFlags(std::ostream* out) {
  if (FLAGS_tune_kernels.empty()) return nullptr;
  return std::make_shared<KernelTuner>(
      DefaultOpRegistry(),
      KernelTunerOptions{
          .cache_file = FLAGS_tune_kernels,
          .warn = [out](const std::string& message) { *out << "warning: " << message << "\n"; },
          .log = [out](const std::string& line) { *out << "tuning: " << line << std::endl; }});
}

MemoryOptions MemoryFromFlags() {
  MemoryOptions memory;
  memory.recompute = ParseRecompute(FLAGS_recompute);
  memory.budget_bytes = FLAGS_budget_bytes;
  return memory;
}

// Checks the flags that nothing checks later.
void CheckFlags() {
  SKIFF_ENFORCE(FLAGS_threads >= 0, kInvalidArgument, "threads = ", FLAGS_threads,
                ": expected no negative number");
  // OpenMP ends the process if the system refuses it a thread.
  constexpr int32_t kMostThreads = 4096;
  SKIFF_ENFORCE(FLAGS_threads <= kMostThreads, kInvalidArgument, "threads = ", FLAGS_threads,
                ": expected at most ", kMostThreads);
  SKIFF_ENFORCE(FLAGS_epochs >= 1, kInvalidArgument, "epochs = ", FLAGS_epochs,
                ": expected at least 1");
  // Steps of all epochs are counted in 63 bits.
  constexpr int64_t kMostEpochs = 1'000'000'000;
  SKIFF_ENFORCE(FLAGS_epochs <= kMostEpochs, kInvalidArgument, "epochs = ", FLAGS_epochs,
                ": expected at most ", kMostEpochs);
  SKIFF_ENFORCE(FLAGS_stop_after >= 0, kInvalidArgument, "stop_after = ", FLAGS_stop_after,
                ": expected no negative number");
  training::PrecisionFromName("save_precision", FLAGS_save_precision);
  SKIFF_ENFORCE(FLAGS_loss_scale == "auto" || FLAGS_precision != "float32", kInvalidArgument,
                "loss_scale = ", FLAGS_loss_scale,
                ": expected precision to be bfloat16 or float16");
  SKIFF_ENFORCE(FLAGS_keep_float32.empty() || FLAGS_precision != "float32" ||
                    FLAGS_save_precision != "float32",
                kInvalidArgument, "keep_float32 = ", FLAGS_keep_float32,
                ": expected precision or save_precision to be bfloat16 or float16");
}

training::TrainerOptions OptionsOfTrainer(const TrainingTask& task, const TrainableModel& model,
                                          const std::vector<FileContents>& read,
                                          const Sharing& sharing) {
  Settings settings = FixedSettings(model, task, read, sharing);
  std::map<std::string, std::string> earlier = kEarlierSettings;
  earlier.insert(task.earlier_configuration.begin(), task.earlier_configuration.end());
  return {.title = task.title,
          .output_dir = OutputDirectory(model),
          .samples = task.samples,
          .epochs = FLAGS_epochs,
          .save_every_steps = FLAGS_save_every,
          .early_stop_epochs = FLAGS_early_stop,
          .stop_after_steps = FLAGS_stop_after,
          .whole_rounds = FLAGS_global_batch > 0,
          .initial_model = FLAGS_initial_model,
          .new_parameters = task.new_parameters,
          .saved_precision = {.dtype = training::PrecisionFromName("save_precision",
                                                                   FLAGS_save_precision),
                              .keep_float32 = SplitNames(FLAGS_keep_float32)},
          .model_files = task.model_files,
          .configuration = std::move(settings.configuration),
          .earlier_configuration = std::move(earlier),
          .file_settings = std::move(settings.files),
          .is_terminal = training::StdoutIsTerminal(),
          .place = PlaceOfRank(FLAGS_place, sharing.world),
          .compile = {.memory = MemoryFromFlags(),
                      .passes = ParsePasses(FLAGS_passes),
                      .graphs = FLAGS_graphs,
                      .math = MathModeFromName(FLAGS_math)}};
}

// Validates the newest checkpoint and prints the result.
void PrintEvaluation(const training::TrainingProgram& program, training::Trainer* trainer,
                     std::ostream* out) {
  trainer->LoadForEvaluation();
  *out << "validation " << ShortText(program, trainer->Evaluate()) << "\n";
  const training::MetricValues averaged = trainer->EvaluateAveraged();
  if (!averaged.empty()) {
    *out << "with averaged weights: validation " << ShortText(program, averaged) << "\n";
  }
  *out << "weights " << trainer->WeightsHash() << "\n";
}

// Returns the task, with readers that give this rank its batches, and the files it was made from.
std::pair<TrainingTask, std::vector<FileContents>> MakeTask(const TrainableModel& model,
                                                            const Sharing& sharing) {
  const ReadFiles read_files;
  TrainingTask task =
      model.make_task({.batch_size = FLAGS_batch_size,
                       .epochs = FLAGS_epochs,
                       .seed = FLAGS_seed,
                       .ranks = sharing.world.size,
                       .optimization = OptimizationFromFlags(sharing.merged_steps)});
  task.train = TrainingShare(std::move(task.train), sharing.world);
  task.validation = EvaluationShare(std::move(task.validation), sharing.world);
  return {std::move(task), ContentsOf(read_files)};
}

void PrintStart(const TrainingTask& task, const TrainableModel& model, const Sharing& sharing,
                std::ostream* out) {
  const std::string ranks = TextOfRanks(sharing.ranks, sharing.merged_steps, FLAGS_batch_size);
  *out << task.title << ": " << task.extent << ", " << FLAGS_epochs << " epochs of "
       << task.train->batches_in_epoch() << " steps, " << (ranks.empty() ? "" : ranks + ", ")
       << omp_get_max_threads() << " threads, output in " << OutputDirectory(model) << std::endl;
}

// Nobody knows the options of the launcher that has started the ranks, nor whether the script that
// starts the program alone is there for each rank.
std::string HowToResume(const CommandLine& line, const TrainableModel& model, bool has_ranks) {
  return has_ranks ? "go on by the launcher of these ranks with:\n  " +
                         WithResume(line.program, line.flags)
                   : "go on with:\n  " + WithResume(CommandOf(model), line.flags);
}

int Train(const CommandLine& line, const TrainableModel& model,
          const std::shared_ptr<Communicator>& ranks) {
  CheckFlags();
  const Sharing sharing = SharingFromFlags(ranks.get());
  training::RankLog log(sharing.world, &std::cout);
  std::ostream& out = *log.stream();
  SetThreads(FLAGS_threads, ranks.get());
  // Before the first tensor is made, so that all of them count.
  const Place place = PlaceOfRank(FLAGS_place, sharing.world);
  AllocatorOf(place).SetLimit(FLAGS_memory_limit_bytes);

  const auto [task, read] = MakeTask(model, sharing);
  PrintStart(task, model, sharing, &out);
  training::TrainerOptions options = OptionsOfTrainer(task, model, read, sharing);
  options.compile.tuner = TunerFromFlags(&out);
  options.compile.data_parallel = DataParallelFromFlags(ranks, place);
  training::Trainer trainer(task.program.get(), task.train.get(), task.validation.get(),
                            std::move(options), &std::cout);
  if (FLAGS_evaluate_only) {
    PrintEvaluation(*task.program, &trainer, &out);
    return 0;
  }
  if (FLAGS_resume) trainer.Resume();
  const training::TrainingResult result = trainer.Run();
  if (sharing.world.rank == 0) {
    PrintResult(result, OutputDirectory(model), HowToResume(line, model, ranks != nullptr), model,
                task.baselines);
  }
  // As a shell reports a process that a signal has ended.
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
                            const CommandLine line = {argv[0], {argv + 1, argv + argc}};
                            return RunAsRank([&](const std::shared_ptr<Communicator>& ranks) {
                              return Train(line, model, ranks);
                            });
                          },
                      .epilogue = [&] { return Examples("For example:", model); },
                      .flag_defaults = model.flag_defaults});
}

}  // namespace skiff::models
