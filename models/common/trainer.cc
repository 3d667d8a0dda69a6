#include "models/common/trainer.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "models/common/learning_curve.h"
#include "models/common/progress.h"
#include "models/common/stop_request.h"

namespace skiff::models {
namespace {

// In the state: how many threads computed.
constexpr const char* kThreads = "threads";
// Which kernels a tuner has chosen; absent if there was no tuner.
constexpr const char* kKernelChoices = "kernel_choices";
constexpr const char* kConfigurationPrefix = "configuration.";
// Places of the training program's fetches; the evaluation program has the first two.
constexpr size_t kLossFetch = 0;
constexpr size_t kAccuracyFetch = 1;
constexpr size_t kLearningRateFetch = 2;

// Hexadecimal, so that the number comes back bit for bit.
std::string ExactText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%a", value);
  return text;
}

const std::string& StateValue(const TrainerState& state, const std::string& name) {
  const auto found = state.find(name);
  SKIFF_ENFORCE(found != state.end(), kDataLoss, "the checkpoint's state has no \"", name, "\"");
  return found->second;
}

double NumberOf(const TrainerState& state, const std::string& name) {
  const std::string& text = StateValue(state, name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  SKIFF_ENFORCE(!text.empty() && *end == '\0', kDataLoss, "the checkpoint's state has ", name,
                " = \"", text, "\": expected a number");
  return value;
}

int64_t IntegerOf(const TrainerState& state, const std::string& name) {
  const std::string& text = StateValue(state, name);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  SKIFF_ENFORCE(error == std::errc() && stop == end, kDataLoss, "the checkpoint's state has ", name,
                " = \"", text, "\": expected an integer of 64 bits");
  return value;
}

void CheckConfiguration(const std::map<std::string, std::string>& expected,
                        const TrainerState& state) {
  const std::string prefix = kConfigurationPrefix;
  for (const auto& [name, value] : expected) {
    const auto saved = state.find(prefix + name);
    SKIFF_ENFORCE(saved != state.end(), kInvalidArgument,
                  "the checkpoint is another program's: it was made without ", name,
                  ", but now that is ", value);
    SKIFF_ENFORCE(saved->second == value, kInvalidArgument, "the checkpoint was made with ", name,
                  " = ", saved->second, ", but now it is ", value,
                  ": resume with the old value, or begin anew in another output directory");
  }
  for (const auto& [name, value] : state) {
    const bool is_known =
        !name.starts_with(prefix) || expected.contains(name.substr(prefix.size()));
    SKIFF_ENFORCE(is_known, kInvalidArgument,
                  "the checkpoint is another program's: it was made with ",
                  name.substr(prefix.size()), " = ", value, ", which there isn't now");
  }
}

// None if the checkpoint's training had no tuner.
std::optional<KernelChoices> SavedChoices(const TrainerState& state) {
  const auto saved = state.find(kKernelChoices);
  if (saved == state.end()) return {};
  return ParseKernelChoices(saved->second, StrCat("the checkpoint's state, ", kKernelChoices));
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

// false for an empty file or directory as well.
bool HoldsSomething(const std::string& path) {
  if (!PathExists(path)) return false;
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error) ThrowSystemError("look into", path, error.value());
  return !is_empty;
}

std::string Percent(double share) { return Fixed(100 * share, 2) + " %"; }

CompileOptions CompileOptionsOf(const TrainerOptions& options, std::shared_ptr<KernelTuner> tuner) {
  return {.memory = options.memory,
          .fuse_optimizer = options.fuse_optimizer,
          .flatten_parameters = options.flatten_parameters,
          .tuner = std::move(tuner)};
}

}  // namespace

Trainer::Trainer(const ClassifierProgram* program, BatchReader* train, BatchReader* validation,
                 TrainerOptions options, std::ostream* out)
    : program_(program),
      train_(train),
      validation_(validation),
      options_(std::move(options)),
      out_(out),
      training_{executor_.Compile(*program->main, CompileOptionsOf(options_, options_.tuner)),
                {program->loss, program->accuracy, program->learning_rate},
                {}},
      evaluation_{executor_.Compile(*program->test, CompileOptionsOf(options_, options_.tuner)),
                  {program->loss, program->accuracy},
                  {}} {
  SKIFF_ENFORCE(options_.epochs >= 1, kInvalidArgument, "epochs = ", options_.epochs,
                ": expected at least 1");
  SKIFF_ENFORCE(options_.save_every_steps >= 0, kInvalidArgument,
                "save_every = ", options_.save_every_steps, ": expected no negative number");
  SKIFF_ENFORCE(options_.early_stop_epochs >= 0, kInvalidArgument,
                "early_stop = ", options_.early_stop_epochs, ": expected no negative number");
  if (program->average != nullptr) average_.emplace(program->average->Compile(&executor_));
  executor_.Run(*program->startup);
}

std::string Trainer::CheckpointDirectory() const {
  return JoinPath(options_.output_dir, "checkpoints");
}

std::string Trainer::ModelDirectory() const { return JoinPath(options_.output_dir, "model"); }

std::string Trainer::LogPath() const { return JoinPath(options_.output_dir, "training_log.jsonl"); }

void Trainer::RefuseToOverwriteTraining() const {
  SKIFF_ENFORCE(!HasCheckpoint(CheckpointDirectory()), kFailedPrecondition, options_.output_dir,
                " holds a training: --resume to go on with it, or another --output_dir");
  for (const std::string& path : {ModelDirectory(), LogPath()}) {
    SKIFF_ENFORCE(!HoldsSomething(path), kFailedPrecondition, path,
                  " is of a training without a checkpoint to go on from: remove it, or take "
                  "another --output_dir");
  }
}

std::unique_ptr<FileLock> Trainer::NewLock() const {
  auto lock = std::make_unique<FileLock>(JoinPath(options_.output_dir, ".lock"));
  SKIFF_ENFORCE(lock->is_held(), kFailedPrecondition, "another training is writing in ",
                options_.output_dir, ": wait for its end, or take another --output_dir");
  return lock;
}

void Trainer::Resume() {
  // Before the lock, which would be left in a directory that has nothing to do with trainings.
  SKIFF_ENFORCE(HasCheckpoint(CheckpointDirectory()), kNotFound, CheckpointDirectory(),
                " holds no checkpoint");
  std::unique_ptr<FileLock> taken = lock_ == nullptr ? NewLock() : nullptr;
  const TrainerState state = Load();
  if (taken != nullptr) lock_ = std::move(taken);
  is_continuation_ = true;
  const std::string threads = std::to_string(omp_get_max_threads());
  const auto saved = state.find(kThreads);
  if (saved != state.end() && saved->second != threads) {
    *out_ << "warning: the checkpoint was made with threads = " << saved->second
          << ", but now it is " << threads
          << ": the result will not be that of the unbroken training, bit for bit\n";
  }
}

void Trainer::LoadForEvaluation() { Load(); }

TrainerState Trainer::Load() {
  // What the user changed is told as that, not as the variables that differ for it.
  Progress restored;
  std::optional<KernelChoices> choices;
  LoadedCheckpoint loaded =
      LoadLatestCheckpoint(CheckpointDirectory(), *program_->main, &executor_.scope(),
                           {.check_state = [&](const TrainerState& state) {
                             CheckConfiguration(options_.configuration, state);
                             restored = RestoredProgress(state);
                             choices = SavedChoices(state);
                           }});
  for (const RefusedCheckpoint& refused : loaded.refused) {
    *out_ << "skipped " << refused.path << ": " << refused.reason << "\n";
  }
  restored.step = loaded.step;
  progress_ = restored;
  *out_ << "resumed from " << loaded.path << ": step " << progress_.step << ", epoch "
        << progress_.position.epoch + 1 << ", batch " << progress_.position.batch << "\n";
  ContinueWith(std::move(choices));
  return std::move(loaded.state);
}

// Other kernels give other bits: what the checkpoint's training did is done again.
void Trainer::ContinueWith(std::optional<KernelChoices> choices) {
  std::shared_ptr<KernelTuner>& tuner = options_.tuner;
  if (!choices && tuner == nullptr) return;
  if (!choices) {
    *out_ << "warning: kernels aren't tuned, since those of the checkpoint's training weren't\n";
    tuner = nullptr;
  } else {
    if (tuner == nullptr) {
      tuner = std::make_shared<KernelTuner>(
          DefaultOpRegistry(), KernelTunerOptions{.warn = [out = out_](const std::string& message) {
            *out << "warning: " << message << "\n";
          }});
    }
    tuner->FixChoices(*std::move(choices));
  }
  for (auto [programs, program] :
       {std::pair(&training_, program_->main.get()), {&evaluation_, program_->test.get()}}) {
    programs->by_size.clear();
    programs->compiled = executor_.Compile(*program, CompileOptionsOf(options_, tuner));
  }
}

void Trainer::PreparePlans() {
  for (const int64_t size : train_->batch_sizes()) BoundFor(&training_, size);
  for (const int64_t size : validation_->batch_sizes()) BoundFor(&evaluation_, size);
  *out_ << options_.tuner->Summary() << std::endl;
}

TrainingResult Trainer::Run() {
  CreateDirectories(options_.output_dir);
  const std::unique_ptr<FileLock> lock = lock_ == nullptr ? NewLock() : std::move(lock_);
  if (!is_continuation_) RefuseToOverwriteTraining();
  is_continuation_ = true;
  for (const std::string& directory : {options_.output_dir, ModelDirectory()}) {
    RemoveTempFiles(directory);
  }
  TrainingLog log(LogPath(), progress_.position.epoch);
  for (const std::string& message : log.warnings()) *out_ << "warning: " << message << "\n";
  const StopRequest request;
  const auto stop = [&] {
    return request.signal() != 0 ||
           (options_.stop_after_steps > 0 && progress_.step >= options_.stop_after_steps);
  };
  if (options_.tuner != nullptr) PreparePlans();
  TrainingResult result;
  result.finished = true;
  while (progress_.position.epoch < options_.epochs && !StoppedEarly()) {
    if (!TrainEpoch(stop)) {
      Save();
      result.finished = false;
      result.signal = request.signal();
      break;
    }
    EndEpoch(&log);
  }
  if (result.finished && StoppedEarly()) {
    *out_ << "stopped early: no better accuracy in " << EpochsWithoutGain() << " epochs\n";
  }
  result.best_accuracy = progress_.best_accuracy;
  result.best_epoch = progress_.best_epoch;
  result.records = log.records();
  result.weights_hash = WeightsHash();
  return result;
}

int64_t Trainer::EpochsWithoutGain() const {
  return progress_.position.epoch - progress_.best_epoch;
}

// Of the saved state alone, so that a resumed training ends where the unbroken one does.
bool Trainer::StoppedEarly() const {
  return options_.early_stop_epochs > 0 && EpochsWithoutGain() >= options_.early_stop_epochs;
}

EvaluationResult Trainer::Evaluate() {
  validation_->Seek({});
  EvaluationResult sums;
  int64_t samples = 0;
  Batch batch;
  while (validation_->Next(&batch)) {
    const BoundProgram& step = Step(&evaluation_, batch);
    const auto size = static_cast<double>(batch.size());
    sums.loss += size * step.fetch(kLossFetch).Item<float>();
    sums.accuracy += size * step.fetch(kAccuracyFetch).Item<float>();
    samples += batch.size();
  }
  sums.loss /= static_cast<double>(samples);
  sums.accuracy /= static_cast<double>(samples);
  return sums;
}

std::unique_ptr<ReplacedValues> Trainer::ApplyAverages() {
  if (!average_) return nullptr;
  return std::unique_ptr<ReplacedValues>(new ReplacedValues(average_->Apply()));
}

std::optional<EvaluationResult> Trainer::EvaluateAveraged() {
  if (!average_ || progress_.step == 0) return {};
  const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
  return Evaluate();
}

std::string Trainer::WeightsHash() const {
  return skiff::WeightsHash(executor_.scope(), PersistableNames(*program_->test));
}

Trainer::BoundBatch& Trainer::BoundFor(BoundPrograms* programs, int64_t batch_size) {
  BoundBatch& bound = programs->by_size[batch_size];
  // Parameters move once when they are laid flat.
  if (bound.program != nullptr && bound.program->is_current()) return bound;
  std::vector<int64_t> dims = program_->main->root()->GetVar(program_->image)->dims;
  dims[0] = batch_size;
  bound.image = Tensor(Shape(std::span<const int64_t>(dims)), DType::kFloat32);
  bound.label = Tensor({batch_size, 1}, DType::kInt64);
  bound.program = std::make_unique<BoundProgram>(programs->compiled.Bind(
      {{program_->image, bound.image}, {program_->label, bound.label}}, programs->fetches));
  return bound;
}

BoundProgram& Trainer::Step(BoundPrograms* programs, const Batch& batch) {
  BoundBatch& bound = BoundFor(programs, batch.size());
  CopyTensor(batch.input, &bound.image);
  CopyTensor(batch.label, &bound.label);
  bound.program->Step();
  return *bound.program;
}

bool Trainer::TrainEpoch(const std::function<bool()>& stop) {
  train_->Seek(progress_.position);
  models::Progress bar(StrCat("epoch ", progress_.position.epoch + 1, "/", options_.epochs),
                       progress_.position.batch, train_->batches_per_epoch(), options_.is_terminal,
                       out_);
  Batch batch;
  while (true) {
    if (stop()) return false;
    const double start = SteadySeconds();
    if (!train_->Next(&batch)) return true;
    TrainBatch(batch);
    const double seconds = SteadySeconds() - start;
    progress_.seconds += seconds;
    progress_.epoch_seconds += seconds;
    const auto samples = static_cast<double>(progress_.samples);
    bar.Update(progress_.position.batch,
               StrCat("loss ", Fixed(progress_.loss_sum / samples, 4), "  accuracy ",
                      Percent(progress_.correct / samples)));
    if (options_.save_every_steps > 0 && progress_.step % options_.save_every_steps == 0) Save();
  }
}

void Trainer::TrainBatch(const Batch& batch) {
  const BoundProgram& step = Step(&training_, batch);
  const auto size = static_cast<double>(batch.size());
  const double loss = step.fetch(kLossFetch).Item<float>();
  progress_.learning_rate = step.fetch(kLearningRateFetch).Item<float>();
  SKIFF_ENFORCE(std::isfinite(loss), kFailedPrecondition, "the loss is ", loss, " at step ",
                progress_.step + 1, ", learning rate ", progress_.learning_rate,
                ": try a lower learning rate or a longer warm-up");
  progress_.loss_sum += size * loss;
  progress_.correct += size * step.fetch(kAccuracyFetch).Item<float>();
  progress_.samples += batch.size();
  ++progress_.step;
  progress_.position = train_->position();
}

void Trainer::EndEpoch(TrainingLog* log) {
  const double start = SteadySeconds();
  const EvaluationResult validation = Evaluate();
  const std::optional<EvaluationResult> averaged = EvaluateAveraged();
  progress_.seconds += SteadySeconds() - start;
  const auto samples = static_cast<double>(progress_.samples);
  TrainingRecord record = {.epoch = progress_.position.epoch + 1,
                           .step = progress_.step,
                           .seconds = progress_.seconds,
                           .learning_rate = progress_.learning_rate,
                           .samples_per_second = samples / progress_.epoch_seconds,
                           .train_loss = progress_.loss_sum / samples,
                           .train_accuracy = progress_.correct / samples,
                           .validation_loss = validation.loss,
                           .validation_accuracy = validation.accuracy};
  if (averaged) {
    record.averaged_validation_loss = averaged->loss;
    record.averaged_validation_accuracy = averaged->accuracy;
  }
  Report(record);
  log->Append(record);
  AtomicWriteFile(JoinPath(options_.output_dir, "learning_curve.svg"),
                  RenderLearningCurve(options_.title, log->records()));
  const double accuracy = averaged ? averaged->accuracy : validation.accuracy;
  if (accuracy > progress_.best_accuracy) {
    progress_.best_accuracy = accuracy;
    progress_.best_epoch = record.epoch;
    const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
    SaveInferenceModel(ModelDirectory(), {program_->image}, {program_->probabilities},
                       *program_->test, executor_.scope(),
                       // In one file: never the weights of two epochs, whenever it is cut off.
                       {.files = {.params_filename = "__params__"}});
  }
  progress_.position = {.epoch = progress_.position.epoch + 1, .batch = 0};
  progress_.loss_sum = progress_.correct = progress_.epoch_seconds = 0;
  progress_.samples = 0;
  Save();
}

void Trainer::Report(const TrainingRecord& record) const {
  *out_ << "epoch " << record.epoch << "/" << options_.epochs << "  loss "
        << Fixed(record.train_loss, 4) << "  accuracy " << Percent(record.train_accuracy)
        << "  |  validation loss " << Fixed(record.validation_loss, 4) << "  accuracy "
        << Percent(record.validation_accuracy);
  if (record.averaged_validation_loss) {
    *out_ << "  |  averaged loss " << Fixed(*record.averaged_validation_loss, 4) << "  accuracy "
          << Percent(*record.averaged_validation_accuracy);
  }
  *out_ << "  |  " << Fixed(record.samples_per_second, 0) << " images/s" << std::endl;
}

void Trainer::Save() {
  const SavedCheckpoint saved = SaveCheckpoint(CheckpointDirectory(), *program_->main,
                                               executor_.scope(), progress_.step, SavedState());
  for (const std::string& message : saved.not_removed) *out_ << "warning: " << message << "\n";
}

TrainerState Trainer::SavedState() const {
  TrainerState state = {
      {"epoch", std::to_string(progress_.position.epoch)},
      {"batch", std::to_string(progress_.position.batch)},
      {"seconds", ExactText(progress_.seconds)},
      {"loss_sum", ExactText(progress_.loss_sum)},
      {"correct", ExactText(progress_.correct)},
      {"samples", std::to_string(progress_.samples)},
      {"epoch_seconds", ExactText(progress_.epoch_seconds)},
      {"learning_rate", ExactText(progress_.learning_rate)},
      {"best_accuracy", ExactText(progress_.best_accuracy)},
      {"best_epoch", std::to_string(progress_.best_epoch)},
      {kThreads, std::to_string(omp_get_max_threads())},
  };
  if (options_.tuner != nullptr) {
    state[kKernelChoices] = PrintKernelChoices(options_.tuner->choices());
  }
  for (const auto& [name, value] : options_.configuration) {
    state[kConfigurationPrefix + name] = value;
  }
  return state;
}

Trainer::Progress Trainer::RestoredProgress(const TrainerState& state) const {
  Progress restored;
  restored.position = {.epoch = IntegerOf(state, "epoch"), .batch = IntegerOf(state, "batch")};
  SKIFF_ENFORCE(restored.position.epoch >= 0 && restored.position.batch >= 0 &&
                    restored.position.batch <= train_->batches_per_epoch(),
                kDataLoss, "the checkpoint's state is in epoch ", restored.position.epoch,
                ", batch ", restored.position.batch, ": expected at most ",
                train_->batches_per_epoch(), " batches an epoch");
  restored.seconds = NumberOf(state, "seconds");
  restored.loss_sum = NumberOf(state, "loss_sum");
  restored.correct = NumberOf(state, "correct");
  restored.samples = IntegerOf(state, "samples");
  restored.epoch_seconds = NumberOf(state, "epoch_seconds");
  restored.learning_rate = NumberOf(state, "learning_rate");
  restored.best_accuracy = NumberOf(state, "best_accuracy");
  restored.best_epoch = IntegerOf(state, "best_epoch");
  return restored;
}

}  // namespace skiff::models
