// What makes a resumed training equal to an unbroken one, bit for bit: everything that decides what
// comes next is in the checkpoint (parameters, optimizer states, step counter, reader state, sums
// of the epoch, best value, kernel choices), and every decision is a function of that alone, early
// stopping included. Files are written in an order in which each crash leaves a state to resume
// from: log, curve, model, and last the checkpoint. If the checkpoint is missing, the epoch is run
// again and writes the same files again.
//
// With several ranks, all of this holds on each: the numbers that decide are those of all ranks
// (run_report.h, evaluation.h), so each rank comes to the same decisions, and rank 0 writes.
#include "framework/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <ostream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/base/str_cat.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/file_lock.h"
#include "framework/training/compiled_training.h"
#include "framework/training/evaluation.h"
#include "framework/training/initial_weights.h"
#include "framework/training/learning_curve.h"
#include "framework/training/merge_rounds.h"
#include "framework/training/program_precision.h"
#include "framework/training/progress.h"
#include "framework/training/rank_agreement.h"
#include "framework/training/rank_log.h"
#include "framework/training/run_report.h"
#include "framework/training/stop_request.h"
#include "framework/training/trained_model.h"
#include "framework/training/training_checks.h"
#include "framework/training/training_directory.h"
#include "framework/training/training_facts.h"
#include "framework/training/training_log.h"
#include "framework/training/training_metrics.h"
#include "framework/training/training_progress.h"
#include "framework/training/training_reports.h"
#include "framework/training/training_settings.h"
#include "framework/training/training_state.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff::training {
namespace {

// Why a training is to stop: a signal, or this.
constexpr int32_t kStopWithoutSignal = 1;
// Returns why this rank wants to stop; 0: it doesn't.
using Stop = std::function<int32_t()>;

// Returns nullptr for a single rank.
Communicator* RanksOf(const TrainerOptions& options) {
  Communicator* communicator = options.compile.data_parallel.communicator.get();
  return RankCount(communicator) > 1 ? communicator : nullptr;
}

}  // namespace

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
  // Loads the newest checkpoint, and returns it.
  LoadedCheckpoint Load();
  // Checks that all ranks have loaded the same checkpoint.
  void CheckSameLoaded(const LoadedCheckpoint& loaded) const;
  void ContinueWith(std::optional<KernelChoices> choices);
  // Does nothing on ranks that don't write.
  void CheckDirectory() const;
  // Takes the output directory, on the rank that writes: its lock, and the log.
  void TakeDirectory();
  // Checks that all ranks begin the same training.
  void CompareRanks() const;
  TrainingResult RunTogether();
  // Makes the plans of all batches.
  void PreparePlans();
  // Takes over the kernels that rank 0 has chosen.
  void TakeKernelChoices();
  // Trains up to the last epoch. Returns false if it was stopped before.
  bool TrainEpochs(const Stop& stop);
  bool StoppedEarly() const;
  // Returns whether a checkpoint may be made of what the scope holds.
  bool MaySave() const;
  void GoToProgress();
  // Trains to the end of the epoch. Returns how many batches of the next epoch the last run has
  // taken, or nothing if the training is to stop before.
  std::optional<int64_t> TrainEpoch(const Stop& stop);
  // Returns why the training is to stop; all ranks return the same.
  int32_t StopOfRanks(const Stop& stop) const;
  // Returns whether the training ends before the next run, which its last batches don't fill.
  bool LacksRun(int64_t batches_in_epoch) const;
  // Returns whether a checkpoint is due after a run within the epoch.
  bool SaveIsDue() const;
  void TrainBatch(const Batch& batch, const Stop& stop);
  // Asks all ranks whether they want to stop, for StopOfRanks.
  void AgreeOnStop(const Stop& stop);
  // Adds what all ranks report of a run.
  void TakeReports(const RunReport& own);
  // Takes over rank 0's times, so that all ranks report, and callbacks see, the same times.
  void TakeTimes();
  void ReportToCallbacks(const MetricValues& metrics, bool is_averaged);
  // `taken`: as TrainEpoch returns it.
  void EndEpoch(int64_t taken, const Stop& stop);
  void WriteEpoch(const TrainingRecord& record);
  void KeepIfBest(int64_t epoch, double value);
  // Checks that all ranks have the weights and the callbacks' states that rank 0 is about to save.
  void CheckSameState() const;
  void Save();
  void ReportNotRemoved(const SavedCheckpoint& saved);

  const TrainingProgram* program_;
  Reader* train_;
  Reader* validation_;
  TrainerOptions options_;
  Communicator* ranks_;  // nullptr: this rank trains alone
  const World world_;
  RankLog rank_log_;
  std::ostream* out_;
  TrainingDirectory directory_;
  CompiledTraining compiled_;
  TrainedModel model_;
  MergeRounds rounds_;
  TrainingProgress progress_;
  int32_t agreed_stop_ = 0;     // after the last run, of several ranks
  bool save_waits_ = false;     // for the end of a round
  double earlier_seconds_ = 0;  // of training, before the last resume
  bool is_continuation_ = false;
  bool has_reported_plan_ = false;
  std::optional<TrainingControl> control_;  // during Run
  // On the rank that writes. Of the output directory: from Resume to the end of Run.
  std::unique_ptr<FileLock> lock_;
  std::optional<TrainingLog> log_;  // during Run
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
      ranks_(RanksOf(options_)),
      world_(ranks_ == nullptr ? World() : ranks_->world()),
      rank_log_(world_, out),
      out_(rank_log_.stream()),
      directory_(options_.output_dir),
      compiled_(program, options_),
      model_(program, &options_),
      rounds_(*program->main) {
  // Only the output of rank 0 is for a terminal.
  if (world_.rank != 0) options_.is_terminal = false;
  progress_.sums.resize(metrics().all().size());
  CheckMergeable(metrics(), *validation);
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
  const InitialWeights weights =
      TakeWeights(options_.initial_model, *program_->main, &compiled_.scope(),
                  {.new_parameters = options_.new_parameters,
                   .allow_missing = options_.new_parameters.empty(),
                   .allow_unused = true});
  ReportInitialWeights(weights, options_.initial_model, out_);
}

void Trainer::Implementation::Resume() {
  CheckEqualOnRanks(ranks_, {{"the call", "Resume"}});
  std::unique_ptr<FileLock> taken;
  LoadedCheckpoint loaded;
  DoOnRanks(ranks_, [&] {
    // Before taking the lock, which would leave its file in a directory that has nothing to do with
    // trainings.
    SKIFF_ENFORCE(HasCheckpoint(directory_.checkpoints()), kNotFound, directory_.checkpoints(),
                  " holds no checkpoint");
    if (world_.rank == 0 && lock_ == nullptr) taken = directory_.Lock();
    loaded = Load();
  });
  CheckSameLoaded(loaded);
  // Kept only now: if loading fails, the trainer must be as it was.
  if (taken != nullptr) lock_ = std::move(taken);
  is_continuation_ = true;
  WarnOfOtherThreads(loaded.state, out_);
}

void Trainer::Implementation::LoadForEvaluation() {
  CheckEqualOnRanks(ranks_, {{"the call", "LoadForEvaluation"}});
  LoadedCheckpoint loaded;
  DoOnRanks(ranks_, [&] { loaded = Load(); });
  CheckSameLoaded(loaded);
}

void Trainer::Implementation::CheckSameLoaded(const LoadedCheckpoint& loaded) const {
  // A rank may see the output directory under another path.
  const std::string name = loaded.path.substr(loaded.path.find_last_of('/') + 1);
  CheckEqualOnRanks(ranks_, {{"the newest checkpoint", name}});
}

LoadedCheckpoint Trainer::Implementation::Load() {
  // check_state runs before the variables are compared. So a changed option is reported as such,
  // and not as the variables that differ because of it.
  RestoredState restored;
  LoadCheckpointOptions loading;
  loading.check_state = [&](const TrainerState& state) {
    restored = RestoreState(state, metrics().all(), options_, train_);
  };
  if (ranks_ != nullptr || options_.whole_rounds) {
    loading.is_optional = IsOfMergeRound;
    loading.check_variable = [&](const std::string& name, const Tensor& value) {
      if (restored.progress.epoch < options_.epochs) CheckBetweenRounds(name, value);
    };
  }
  const std::vector<TrainerState> callbacks = StatesOf(options_.callbacks);
  LoadedCheckpoint loaded;
  try {
    loaded = LoadLatestCheckpoint(directory_.checkpoints(), *program_->main, &compiled_.scope(),
                                  loading);
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
  return loaded;
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

void Trainer::Implementation::CheckDirectory() const {
  if (world_.rank == 0) directory_.CheckInPlace(*lock_);
}

void Trainer::Implementation::CompareRanks() const {
  if (ranks_ == nullptr) return;
  RankFacts facts = {{"the call", "Run"}};
  const RankFacts own = FactsOf(*program_, *validation_, options_, progress_, compiled_.scope());
  facts.insert(facts.end(), own.begin(), own.end());
  CheckEqualOnRanks(ranks_, facts);
}

TrainingResult Trainer::Implementation::Run() {
  const auto release = [this] {
    log_.reset();
    lock_.reset();
  };
  try {
    CompareRanks();
    DoOnRanks(ranks_, [this] { TakeDirectory(); });
    TrainingResult result = RunTogether();
    release();
    return result;
  } catch (const AgreedError&) {
    release();
    throw;
  } catch (const std::exception& error) {
    release();
    AbortRanks(ranks_, StrCat("after step ", progress_.step, ": ", error.what()));
    throw;
  } catch (...) {
    release();
    AbortRanks(ranks_, StrCat("after step ", progress_.step, ": an exception of an unknown type"));
    throw;
  }
}

TrainingResult Trainer::Implementation::RunTogether() {
  for (const std::string& message : log_ ? log_->warnings() : std::vector<std::string>()) {
    *out_ << "warning: " << message << "\n";
  }
  control_.emplace(*program_, &compiled_.scope());
  const StopRequest request;
  const auto stop = [&]() -> int32_t {
    if (request.signal() != 0) return request.signal();
    const bool is_over =
        options_.stop_after_steps > 0 && progress_.step >= options_.stop_after_steps;
    return is_over || control_->is_stopped() ? kStopWithoutSignal : 0;
  };
  AgreeOnStop(stop);
  if (options_.compile.tuner != nullptr) PreparePlans();
  TrainingResult result;
  result.finished = TrainEpochs(stop);
  const int32_t reason = StopOfRanks(stop);
  if (!result.finished && reason != kStopWithoutSignal) result.signal = reason;
  if (result.finished && StoppedEarly()) {
    *out_ << "stopped early: no better " << metrics().decisive().name << " in "
          << progress_.EpochsWithoutGain() << " epochs\n";
  }
  if (result.finished && world_.rank == 0) {
    CheckDirectory();
    directory_.CheckWritten(model_.FileNames(), compiled_.is_averaged());
  }
  result.decisive_metric = metrics().decisive();
  result.best_value = progress_.best_value;
  result.best_epoch = progress_.best_epoch;
  if (log_) result.records = log_->records();
  result.weights_hash = WeightsHash();
  // No rank returns before rank 0 has written everything.
  CheckEqualOnRanks(ranks_, {{"the hash of the weights", result.weights_hash}});
  // Plans aren't saved, so the time before a resume has nothing to do with these.
  ReportPreparation(compiled_.preparation(), progress_.seconds - earlier_seconds_, out_);
  return result;
}

void Trainer::Implementation::TakeDirectory() {
  if (world_.rank != 0) return;
  if (lock_ == nullptr) {
    CreateDirectories(options_.output_dir);
    lock_ = directory_.Lock();
  }
  // It may have been removed since the trainer has resumed.
  CheckDirectory();
  if (!is_continuation_) directory_.CheckUnused();
  is_continuation_ = true;
  // Under the lock: no other training's temporary files are in use.
  directory_.RemoveTempFiles();
  ReportNotRemoved(FinishLastSave(directory_.checkpoints()));
  // Drops the lines of epochs that this run will train again.
  log_.emplace(directory_.log(), progress_.epoch);
  if (program_->half) AtomicWriteFile(directory_.precision(), program_->half->Details());
}

void Trainer::Implementation::PreparePlans() {
  // All choices before the first step: a checkpoint in the middle of the first epoch must hold them
  // all, since timings made after a resume would differ.
  if (world_.rank == 0) compiled_.Prepare(*train_, *validation_);
  if (ranks_ != nullptr) TakeKernelChoices();
  *out_ << options_.compile.tuner->Summary() << std::endl;
}

void Trainer::Implementation::TakeKernelChoices() {
  KernelTuner& tuner = *options_.compile.tuner;
  const std::string activity = "the choice of kernels by rank 0";
  const ActivityScope scope(ranks_, &activity);
  const std::string own = world_.rank == 0 ? PrintKernelChoices(tuner.choices()) : "";
  const std::string chosen = GatherTexts(ranks_, own)[0];
  if (world_.rank == 0) return;
  tuner.FixChoices(ParseKernelChoices(chosen, "the kernels that rank 0 has chosen"));
  compiled_.Compile(options_.compile);
  compiled_.Prepare(*train_, *validation_);
}

// Depends on saved state alone, so that a resumed training ends where the unbroken one does.
bool Trainer::Implementation::StoppedEarly() const {
  return options_.early_stop_epochs > 0 &&
         progress_.EpochsWithoutGain() >= options_.early_stop_epochs;
}

bool Trainer::Implementation::MaySave() const {
  const bool needs_whole = ranks_ != nullptr || options_.whole_rounds;
  return !needs_whole || rounds_.AreOver(compiled_.scope());
}

bool Trainer::Implementation::TrainEpochs(const Stop& stop) {
  while (progress_.epoch < options_.epochs && !(StoppedEarly() && MaySave())) {
    const std::optional<int64_t> taken = TrainEpoch(stop);
    if (!taken) {
      Save();
      return StoppedEarly();
    }
    // The epoch ends with a checkpoint, so a stop between epochs loses nothing.
    EndEpoch(*taken, stop);
  }
  // The training ends within a round, which makes no update: nothing goes on from its gradients.
  if (save_waits_) Save();
  return true;
}

void Trainer::Implementation::GoToProgress() {
  if (progress_.reader.empty()) {
    train_->StartEpoch(progress_.epoch);
  } else {
    train_->Restore(progress_.reader);
  }
}

std::optional<int64_t> Trainer::Implementation::TrainEpoch(const Stop& stop) {
  GoToProgress();
  const int64_t batches = train_->batches_in_epoch();
  Progress bar(StrCat("epoch ", progress_.epoch + 1, "/", options_.epochs), progress_.batch,
               batches, options_.is_terminal, out_);
  Batch batch;
  while (true) {
    // Between two steps, so that a checkpoint is always of whole steps.
    if ((StoppedEarly() || StopOfRanks(stop) != 0) && MaySave()) return std::nullopt;
    const double start = SteadySeconds();
    if (LacksRun(batches) || !train_->Next(&batch)) return 0;
    TrainBatch(batch, stop);
    const double seconds = SteadySeconds() - start;
    progress_.seconds += seconds;
    progress_.epoch_seconds += seconds;
    bar.Update(progress_.batch - batch.from_next_epoch,
               metrics().Text(metrics().Means(progress_.sums)));
    // The reader is in the next epoch, but the epoch isn't over yet: no checkpoint says so.
    if (batch.from_next_epoch > 0) return batch.from_next_epoch;
    if (SaveIsDue()) save_waits_ = true;
    if (save_waits_ && MaySave()) Save();
  }
}

void Trainer::Implementation::AgreeOnStop(const Stop& stop) {
  if (ranks_ == nullptr) return;
  const std::string activity = StrCat("the agreement to go on after step ", progress_.step);
  const ActivityScope scope(ranks_, &activity);
  agreed_stop_ = MaxOverRanks(ranks_, stop());
}

int32_t Trainer::Implementation::StopOfRanks(const Stop& stop) const {
  return ranks_ == nullptr ? stop() : agreed_stop_;
}

bool Trainer::Implementation::LacksRun(int64_t batches_in_epoch) const {
  const bool is_last_epoch = progress_.epoch + 1 == options_.epochs;
  return ranks_ != nullptr && is_last_epoch && progress_.batch + world_.size > batches_in_epoch;
}

bool Trainer::Implementation::SaveIsDue() const {
  // By steps since the very beginning, so that a resumed training saves at the same steps.
  const int64_t every = options_.save_every_steps;
  return every > 0 && progress_.step / every > (progress_.step - world_.size) / every;
}

void Trainer::Implementation::TrainBatch(const Batch& batch, const Stop& stop) {
  const BoundProgram& step = compiled_.Step(batch.feeds);
  if (!std::exchange(has_reported_plan_, true)) ReportPlan(step.plan(), options_.place, out_);
  progress_.learning_rate = metrics().LearningRate(step);
  const RunReport own = {.samples = batch.samples,
                         .values = metrics().Measure(step, batch.samples)};
  const MetricValues values = metrics().Named(own.values);
  const double loss = values.at("loss");
  // Before the counters advance and before anything is saved: the last checkpoint is then from
  // before the loss diverged.
  SKIFF_ENFORCE(std::isfinite(loss), kFailedPrecondition, "the loss is ", loss, " at step ",
                progress_.step + world_.rank + 1, ", learning rate ", progress_.learning_rate,
                ": try a lower learning rate or a longer warm-up");
  progress_.step += world_.size;
  progress_.batch += world_.size;
  // The state after this batch, though the reader may have read ahead.
  progress_.reader = train_->state();
  const StepReport report = {.epoch = progress_.epoch + 1,
                             .batch = progress_.batch - batch.from_next_epoch,
                             .step = progress_.step,
                             .samples = batch.samples,
                             .learning_rate = progress_.learning_rate,
                             .metrics = values};
  for (const auto& callback : options_.callbacks) callback->OnStep(report, &*control_);
  TakeReports({.stop = stop(), .samples = own.samples, .values = own.values});
}

void Trainer::Implementation::TakeReports(const RunReport& own) {
  const std::string activity = StrCat("the reports of step ", progress_.step);
  const ActivityScope scope(ranks_, &activity);
  agreed_stop_ = 0;
  for (const RunReport& report : GatherReports(ranks_, own)) {
    metrics().Add(report.values, &progress_.sums);
    progress_.samples += report.samples;
    agreed_stop_ = std::max(agreed_stop_, report.stop);
  }
}

void Trainer::Implementation::TakeTimes() {
  if (ranks_ == nullptr) return;
  const std::string activity = StrCat("the end of epoch ", progress_.epoch + 1);
  const ActivityScope scope(ranks_, &activity);
  const std::vector<double> own = {progress_.seconds, progress_.epoch_seconds};
  const std::vector<double> all = GatherNumbers<double>(ranks_, own);
  progress_.seconds = all[0];
  progress_.epoch_seconds = all[1];
}

void Trainer::Implementation::ReportToCallbacks(const MetricValues& metrics, bool is_averaged) {
  const EvaluationReport report = {.epoch = progress_.epoch + 1,
                                   .step = progress_.step,
                                   .metrics = metrics,
                                   .is_averaged = is_averaged};
  for (const auto& callback : options_.callbacks) callback->OnEvaluation(report, &*control_);
}

void Trainer::Implementation::EndEpoch(int64_t taken, const Stop& stop) {
  CheckDirectory();
  const double start = SteadySeconds();
  const MetricValues validation = Evaluate();
  ReportToCallbacks(validation, /*is_averaged=*/false);
  const MetricValues averaged = EvaluateAveraged();
  // By now the scope holds the parameters themselves again.
  if (!averaged.empty()) ReportToCallbacks(averaged, /*is_averaged=*/true);
  // Evaluation counts as training time, but not for samples_per_second.
  progress_.seconds += SteadySeconds() - start;
  TakeTimes();
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
  WriteEpoch(record);
  const MetricValues& deciding = averaged.empty() ? validation : averaged;
  const std::string& name = metrics().decisive().name;
  KeepIfBest(record.epoch, deciding.contains(name) ? deciding.at(name) : NAN);
  for (const auto& callback : options_.callbacks) callback->OnEpoch(record, &*control_);
  progress_.EndEpoch(taken);
  AgreeOnStop(stop);
  save_waits_ = true;
  if (MaySave()) Save();
}

void Trainer::Implementation::WriteEpoch(const TrainingRecord& record) {
  if (world_.rank != 0) return;
  log_->Append(record);
  AtomicWriteFile(directory_.curve(), RenderLearningCurve(options_.title, log_->records()));
}

void Trainer::Implementation::KeepIfBest(int64_t epoch, double value) {
  if (!progress_.TakeIfBest(metrics().decisive(), epoch, value) || world_.rank != 0) return;
  if (compiled_.is_averaged()) model_.Save(directory_.unaveraged_model(), compiled_.scope());
  const std::unique_ptr<ReplacedValues> averages = compiled_.ApplyAverages();
  model_.Save(directory_.model(), compiled_.scope());
}

MetricValues Trainer::Implementation::Evaluate() {
  const std::string activity = StrCat("the validation after step ", progress_.step);
  const ActivityScope scope(ranks_, &activity);
  return compiled_.Evaluate(validation_, ranks_);
}

MetricValues Trainer::Implementation::EvaluateAveraged() {
  if (!compiled_.is_averaged() || progress_.step == 0) return {};
  const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
  return Evaluate();
}

std::unique_ptr<ReplacedValues> Trainer::Implementation::ApplyAverages() {
  return compiled_.ApplyAverages();
}

std::string Trainer::Implementation::WeightsHash() const { return compiled_.WeightsHash(); }

void Trainer::Implementation::CheckSameState() const {
  if (ranks_ == nullptr) return;
  RankFacts facts = {{"the learning rate", StrCat(progress_.learning_rate)},
                     {"the hash of the weights", WeightsHash()}};
  for (const auto& callback : options_.callbacks) {
    for (const auto& [name, value] : callback->State()) {
      facts.emplace_back(StrCat("the state of ", callback->Name(), ", ", name), value);
    }
  }
  CheckEqualOnRanks(ranks_, facts);
}

void Trainer::Implementation::Save() {
  save_waits_ = false;
  const std::string activity = StrCat("the checkpoint of step ", progress_.step);
  const ActivityScope scope(ranks_, &activity);
  CheckSameState();
  const std::unique_ptr<Scope> whole = compiled_.GatherScope();
  if (world_.rank != 0) return;
  CheckDirectory();
  ReportNotRemoved(SaveCheckpoint(directory_.checkpoints(), *program_->main, *whole, progress_.step,
                                  StateToSave(progress_, metrics().all(), options_)));
}

void Trainer::Implementation::ReportNotRemoved(const SavedCheckpoint& saved) {
  for (const std::string& message : saved.not_removed) *out_ << "warning: " << message << "\n";
}

}  // namespace skiff::training
