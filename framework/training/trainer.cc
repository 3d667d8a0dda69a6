// What makes a resumed training equal to an unbroken one, bit for bit: everything that decides what
// comes next is in the checkpoint (parameters, optimizer states, step counter, reader state, sums
// of the epoch, best value, kernel choices), and every decision is a function of that alone, early
// stopping included. Files are written in an order in which each crash leaves a state to resume
// from: log, curve, model, and last the checkpoint. If the checkpoint is missing, the epoch is run
// again and writes the same files again.
#include "framework/training/trainer.h"

#include <cmath>
#include <functional>
#include <optional>
#include <ostream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/base/str_cat.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/file_lock.h"
#include "framework/training/compiled_training.h"
#include "framework/training/initial_weights.h"
#include "framework/training/learning_curve.h"
#include "framework/training/program_precision.h"
#include "framework/training/progress.h"
#include "framework/training/stop_request.h"
#include "framework/training/trained_model.h"
#include "framework/training/training_checks.h"
#include "framework/training/training_directory.h"
#include "framework/training/training_log.h"
#include "framework/training/training_metrics.h"
#include "framework/training/training_progress.h"
#include "framework/training/training_reports.h"
#include "framework/training/training_settings.h"
#include "framework/training/training_state.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff::training {

class Trainer::Implementation {
 public:
  Implementation(const TrainingProgram* program, Reader* train, Reader* validation,
                 TrainerOptions options, std::ostream* out);

  void Resume();
  void LoadForEvaluation();
  TrainingResult Run();
  MetricValues Evaluate();
  MetricValues EvaluateAveraged();
  std::unique_ptr<ReplacedValues> ApplyAverages();
  std::string WeightsHash() const;

 private:
  const TrainingMetrics& metrics() const { return compiled_.metrics(); }
  // Adds to the settings, and says, what the program computes in.
  void NotePrecision();
  void TakeInitialWeights();
  // Loads the newest checkpoint and returns its state.
  TrainerState Load();
  void ContinueWith(std::optional<KernelChoices> choices);
  void CheckDirectory() const;
  TrainingResult RunUnderLock();
  // Checks that the training may write in the output directory, and removes what a kill left there.
  void TakeDirectory();
  // Makes the plans of all batches.
  void PreparePlans();
  // Trains up to the last epoch. Returns false if it was stopped before.
  bool TrainEpochs(TrainingLog* log, const std::function<bool()>& stop);
  bool StoppedEarly() const;
  void GoToProgress();
  // Trains to the end of the epoch. Returns false if it was stopped before.
  bool TrainEpoch(const std::function<bool()>& stop);
  void TrainBatch(const Batch& batch);
  void ReportToCallbacks(const MetricValues& metrics, bool is_averaged);
  void EndEpoch(TrainingLog* log);
  void KeepIfBest(int64_t epoch, double value);
  void Save();
  void ReportNotRemoved(const SavedCheckpoint& saved);

  const TrainingProgram* program_;
  Reader* train_;
  Reader* validation_;
  TrainerOptions options_;
  std::ostream* out_;
  TrainingDirectory directory_;
  CompiledTraining compiled_;
  TrainedModel model_;
  TrainingProgress progress_;
  double earlier_seconds_ = 0;  // of training, before the last resume
  bool is_continuation_ = false;
  bool has_reported_plan_ = false;
  std::optional<TrainingControl> control_;  // during Run
  // Of the output directory: from Resume to the end of Run.
  std::unique_ptr<FileLock> lock_;
};

Trainer::Trainer(const TrainingProgram* program, Reader* train, Reader* validation,
                 TrainerOptions options, std::ostream* out)
    : implementation_(
          std::make_unique<Implementation>(program, train, validation, std::move(options), out)) {}

Trainer::~Trainer() = default;

void Trainer::Resume() { implementation_->Resume(); }
void Trainer::LoadForEvaluation() { implementation_->LoadForEvaluation(); }
TrainingResult Trainer::Run() { return implementation_->Run(); }
MetricValues Trainer::Evaluate() { return implementation_->Evaluate(); }
MetricValues Trainer::EvaluateAveraged() { return implementation_->EvaluateAveraged(); }
std::unique_ptr<ReplacedValues> Trainer::ApplyAverages() {
  return implementation_->ApplyAverages();
}
std::string Trainer::WeightsHash() const { return implementation_->WeightsHash(); }

Trainer::Implementation::Implementation(const TrainingProgram* program, Reader* train,
                                        Reader* validation, TrainerOptions options,
                                        std::ostream* out)
    : program_(program),
      train_(train),
      validation_(validation),
      options_(CheckedOptions(std::move(options), train, validation)),
      out_(out),
      directory_(options_.output_dir),
      compiled_(program, options_),
      model_(program, &options_) {
  progress_.sums.resize(metrics().all().size());
  CheckPrograms(*program, metrics().all(), model_.program(), compiled_.scope());
  NotePrecision();
  if (!options_.initial_model.empty()) TakeInitialWeights();
}

void Trainer::Implementation::NotePrecision() {
  const ProgramPrecision precision = PrecisionOf(*program_->main);
  AddPrecision(precision, &options_);
  const std::string text = program_->half ? program_->half->Text() : precision.Text();
  if (!text.empty()) *out_ << text << std::endl;
}

void Trainer::Implementation::TakeInitialWeights() {
  const InitialWeights weights = TakeWeights(options_.initial_model, *program_->main,
                                             &compiled_.scope(), options_.new_parameters);
  ReportInitialWeights(weights, options_.initial_model, out_);
}

void Trainer::Implementation::Resume() {
  // Before taking the lock, which would leave its file in a directory that has nothing to do with
  // trainings.
  SKIFF_ENFORCE(HasCheckpoint(directory_.checkpoints()), kNotFound, directory_.checkpoints(),
                " holds no checkpoint");
  std::unique_ptr<FileLock> taken = lock_ == nullptr ? directory_.Lock() : nullptr;
  const TrainerState state = Load();
  // Kept only now: if loading fails, the trainer must be as it was.
  if (taken != nullptr) lock_ = std::move(taken);
  is_continuation_ = true;
  WarnOfOtherThreads(state, out_);
}

void Trainer::Implementation::LoadForEvaluation() { Load(); }

TrainerState Trainer::Implementation::Load() {
  // check_state runs before the variables are compared. So a changed option is reported as such,
  // and not as the variables that differ because of it.
  RestoredState restored;
  const auto check_state = [&](const TrainerState& state) {
    restored = RestoreState(state, metrics().all(), options_, train_);
  };
  const std::vector<TrainerState> callbacks = StatesOf(options_.callbacks);
  LoadedCheckpoint loaded;
  try {
    loaded = LoadLatestCheckpoint(directory_.checkpoints(), *program_->main, &compiled_.scope(),
                                  {.check_state = check_state});
  } catch (...) {
    RestoreCallbacks(options_.callbacks, callbacks);
    throw;
  }
  for (const RefusedCheckpoint& refused : loaded.refused) {
    *out_ << "skipped " << refused.path << ": " << refused.reason << "\n";
  }
  progress_ = std::move(restored.progress);
  progress_.step = loaded.step;
  earlier_seconds_ = progress_.seconds;
  *out_ << "resumed from " << loaded.path << ": step " << progress_.step << ", epoch "
        << progress_.epoch + 1 << ", batch " << progress_.batch << "\n";
  WarnOfUnknownContents(options_, loaded.state, out_);
  ContinueWith(std::move(restored.choices));
  return std::move(loaded.state);
}

// Repeats the choices of the checkpoint's training, since other kernels give other bits.
void Trainer::Implementation::ContinueWith(std::optional<KernelChoices> choices) {
  std::shared_ptr<KernelTuner>& tuner = options_.compile.tuner;
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
  compiled_.Compile(options_.compile);
}

void Trainer::Implementation::CheckDirectory() const { directory_.CheckInPlace(*lock_); }

TrainingResult Trainer::Implementation::Run() {
  if (lock_ == nullptr) {
    CreateDirectories(options_.output_dir);
    lock_ = directory_.Lock();
  }
  try {
    TrainingResult result = RunUnderLock();
    lock_.reset();
    return result;
  } catch (...) {
    lock_.reset();
    throw;
  }
}

TrainingResult Trainer::Implementation::RunUnderLock() {
  TakeDirectory();
  // Drops the lines of epochs that this run will train again.
  TrainingLog log(directory_.log(), progress_.epoch);
  for (const std::string& message : log.warnings()) *out_ << "warning: " << message << "\n";
  control_.emplace(*program_, &compiled_.scope());
  const StopRequest request;
  const auto stop = [&] {
    return request.signal() != 0 || control_->is_stopped() ||
           (options_.stop_after_steps > 0 && progress_.step >= options_.stop_after_steps);
  };
  if (program_->half) AtomicWriteFile(directory_.precision(), program_->half->Details());
  if (options_.compile.tuner != nullptr) PreparePlans();
  TrainingResult result;
  result.finished = TrainEpochs(&log, stop);
  if (!result.finished) result.signal = request.signal();
  if (result.finished && StoppedEarly()) {
    *out_ << "stopped early: no better " << metrics().decisive().name << " in "
          << progress_.EpochsWithoutGain() << " epochs\n";
  }
  if (result.finished) {
    CheckDirectory();
    directory_.CheckWritten(model_.FileNames(), compiled_.is_averaged());
  }
  result.decisive_metric = metrics().decisive();
  result.best_value = progress_.best_value;
  result.best_epoch = progress_.best_epoch;
  result.records = log.records();
  result.weights_hash = WeightsHash();
  // Plans aren't saved, so the time before a resume has nothing to do with these.
  ReportPreparation(compiled_.preparation(), progress_.seconds - earlier_seconds_, out_);
  return result;
}

void Trainer::Implementation::TakeDirectory() {
  // It may have been removed since the trainer has resumed.
  CheckDirectory();
  if (!is_continuation_) directory_.CheckUnused();
  is_continuation_ = true;
  // Under the lock: no other training's temporary files are in use.
  directory_.RemoveTempFiles();
  ReportNotRemoved(FinishLastSave(directory_.checkpoints()));
}

void Trainer::Implementation::PreparePlans() {
  // All choices before the first step: a checkpoint in the middle of the first epoch must hold them
  // all, since timings made after a resume would differ.
  compiled_.Prepare(*train_, *validation_);
  *out_ << options_.compile.tuner->Summary() << std::endl;
}

// Depends on saved state alone, so that a resumed training ends where the unbroken one does.
bool Trainer::Implementation::StoppedEarly() const {
  return options_.early_stop_epochs > 0 &&
         progress_.EpochsWithoutGain() >= options_.early_stop_epochs;
}

bool Trainer::Implementation::TrainEpochs(TrainingLog* log, const std::function<bool()>& stop) {
  while (progress_.epoch < options_.epochs && !StoppedEarly()) {
    if (!TrainEpoch(stop)) {
      Save();
      return false;
    }
    // The epoch ends with a checkpoint, so a stop between epochs loses nothing.
    EndEpoch(log);
  }
  return true;
}

void Trainer::Implementation::GoToProgress() {
  if (progress_.reader.empty()) {
    train_->StartEpoch(progress_.epoch);
  } else {
    train_->Restore(progress_.reader);
  }
}

bool Trainer::Implementation::TrainEpoch(const std::function<bool()>& stop) {
  GoToProgress();
  Progress bar(StrCat("epoch ", progress_.epoch + 1, "/", options_.epochs), progress_.batch,
               train_->batches_in_epoch(), options_.is_terminal, out_);
  Batch batch;
  while (true) {
    // Between two steps, so that a checkpoint is always of whole steps.
    if (stop()) return false;
    const double start = SteadySeconds();
    if (!train_->Next(&batch)) return true;
    TrainBatch(batch);
    const double seconds = SteadySeconds() - start;
    progress_.seconds += seconds;
    progress_.epoch_seconds += seconds;
    bar.Update(progress_.batch, metrics().Text(metrics().Means(progress_.sums)));
    // By steps since the very beginning, so that a resumed training saves at the same steps.
    if (options_.save_every_steps > 0 && progress_.step % options_.save_every_steps == 0) Save();
  }
}

void Trainer::Implementation::TrainBatch(const Batch& batch) {
  const BoundProgram& step = compiled_.Step(batch.feeds);
  if (!std::exchange(has_reported_plan_, true)) ReportPlan(step.plan(), options_.place, out_);
  progress_.learning_rate = metrics().LearningRate(step);
  const MetricValues values = metrics().Add(step, batch.samples, &progress_.sums);
  const double loss = values.at("loss");
  // Before the counters advance and before anything is saved: the last checkpoint is then from
  // before the loss diverged.
  SKIFF_ENFORCE(std::isfinite(loss), kFailedPrecondition, "the loss is ", loss, " at step ",
                progress_.step + 1, ", learning rate ", progress_.learning_rate,
                ": try a lower learning rate or a longer warm-up");
  progress_.samples += batch.samples;
  ++progress_.step;
  ++progress_.batch;
  // The state after this batch, though the reader may have read ahead.
  progress_.reader = train_->state();
  const StepReport report = {.epoch = progress_.epoch + 1,
                             .batch = progress_.batch,
                             .step = progress_.step,
                             .samples = batch.samples,
                             .learning_rate = progress_.learning_rate,
                             .metrics = values};
  for (const auto& callback : options_.callbacks) callback->OnStep(report, &*control_);
}

void Trainer::Implementation::ReportToCallbacks(const MetricValues& metrics, bool is_averaged) {
  const EvaluationReport report = {.epoch = progress_.epoch + 1,
                                   .step = progress_.step,
                                   .metrics = metrics,
                                   .is_averaged = is_averaged};
  for (const auto& callback : options_.callbacks) callback->OnEvaluation(report, &*control_);
}

void Trainer::Implementation::EndEpoch(TrainingLog* log) {
  CheckDirectory();
  const double start = SteadySeconds();
  const MetricValues validation = Evaluate();
  ReportToCallbacks(validation, /*is_averaged=*/false);
  const MetricValues averaged = EvaluateAveraged();
  // By now the scope holds the parameters themselves again.
  if (!averaged.empty()) ReportToCallbacks(averaged, /*is_averaged=*/true);
  // Evaluation counts as training time, but not for samples_per_second.
  progress_.seconds += SteadySeconds() - start;
  const TrainingRecord record = {
      .epoch = progress_.epoch + 1,
      .step = progress_.step,
      .seconds = progress_.seconds,
      .learning_rate = progress_.learning_rate,
      .samples_per_second = static_cast<double>(progress_.samples) / progress_.epoch_seconds,
      .train = metrics().Means(progress_.sums),
      .validation = validation,
      .averaged = averaged};
  // An evaluation takes its time.
  CheckDirectory();
  ReportEpoch(record, metrics(), options_, compiled_.scope(), out_);
  log->Append(record);
  AtomicWriteFile(directory_.curve(), RenderLearningCurve(options_.title, log->records()));
  const MetricValues& deciding = averaged.empty() ? validation : averaged;
  const std::string& name = metrics().decisive().name;
  KeepIfBest(record.epoch, deciding.contains(name) ? deciding.at(name) : NAN);
  for (const auto& callback : options_.callbacks) callback->OnEpoch(record, &*control_);
  progress_.EndEpoch();
  Save();
}

void Trainer::Implementation::KeepIfBest(int64_t epoch, double value) {
  if (!progress_.TakeIfBest(metrics().decisive(), epoch, value)) return;
  if (compiled_.is_averaged()) model_.Save(directory_.unaveraged_model(), compiled_.scope());
  const std::unique_ptr<ReplacedValues> averages = compiled_.ApplyAverages();
  model_.Save(directory_.model(), compiled_.scope());
}

MetricValues Trainer::Implementation::Evaluate() { return compiled_.Evaluate(validation_); }

MetricValues Trainer::Implementation::EvaluateAveraged() {
  if (!compiled_.is_averaged() || progress_.step == 0) return {};
  const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
  return Evaluate();
}

std::unique_ptr<ReplacedValues> Trainer::Implementation::ApplyAverages() {
  return compiled_.ApplyAverages();
}

std::string Trainer::Implementation::WeightsHash() const { return compiled_.WeightsHash(); }

void Trainer::Implementation::Save() {
  CheckDirectory();
  ReportNotRemoved(SaveCheckpoint(directory_.checkpoints(), *program_->main, compiled_.scope(),
                                  progress_.step,
                                  StateToSave(progress_, metrics().all(), options_)));
}

void Trainer::Implementation::ReportNotRemoved(const SavedCheckpoint& saved) {
  for (const std::string& message : saved.not_removed) *out_ << "warning: " << message << "\n";
}

}  // namespace skiff::training
