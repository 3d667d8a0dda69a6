// What makes a resumed training equal to an unbroken one, bit for bit: everything that decides what
// comes next is in the checkpoint (parameters, optimizer states, step counter, reader state, sums
// of the epoch, best value, kernel choices), and every decision is a function of that alone, early
// stopping included. Files are written in an order in which each crash leaves a state to resume
// from: log, curve, model, and last the checkpoint. If the checkpoint is missing, the epoch is run
// again and writes the same files again.
#include "framework/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/ops_on_host.h"
#include "framework/analysis/widened_ops.h"
#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/base/parallel.h"
#include "framework/base/steady_seconds.h"
#include "framework/builder/update_condition.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/file_lock.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/io/system_error.h"
#include "framework/io/weights_hash.h"
#include "framework/ir/master_name.h"
#include "framework/ir/used_names.h"
#include "framework/precision/loss_scaling.h"
#include "framework/precision/precision_choice.h"
#include "framework/training/average.h"
#include "framework/training/bound_feeds.h"
#include "framework/training/half_model.h"
#include "framework/training/initial_weights.h"
#include "framework/training/learning_curve.h"
#include "framework/training/program_precision.h"
#include "framework/training/progress.h"
#include "framework/training/state_text.h"
#include "framework/training/stop_request.h"
#include "framework/training/training_log.h"
#include "framework/tuning/kernel_choices.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff::training {
namespace {

// In the state: how many threads computed.
constexpr const char* kThreads = "threads";
// Which kernels a tuner has chosen; absent if there was no tuner.
constexpr const char* kKernelChoices = "kernel_choices";
constexpr const char* kConfigurationPrefix = "configuration.";
// Of the value of a setting that names files. Nothing compares it.
constexpr const char* kGivenPrefix = "given.";
constexpr const char* kReaderPrefix = "reader.";

// Of the state of a callback.
std::string CallbackPrefix(size_t i) { return StrCat("callback.", i, "."); }
// Of Callback::Name, of a callback with a state.
std::string CallbackName(size_t i) { return StrCat("callback_name.", i); }

std::string SumName(const Metric& metric) { return metric.name + ".sum"; }
std::string WeightName(const Metric& metric) { return metric.name + ".weight"; }

// Metrics may be counts, so integers are accepted; float64 holds them exactly up to 2^53.
double NumberIn(const Tensor& value, const std::string& name) {
  switch (value.dtype()) {
    case DType::kFloat32:
      return value.Item<float>();
    case DType::kFloat64:
      return value.Item<double>();
    case DType::kInt32:
      return value.Item<int32_t>();
    case DType::kInt64:
      return static_cast<double>(value.Item<int64_t>());
    default:
      Throw(ErrorCode::kInvalidArgument, "the metric \"", name, "\" is of ",
            DTypeName(value.dtype()), ": expected float32, float64, int32 or int64");
  }
}

// Returns the entries of a state whose names start with `prefix`, without the prefix.
std::map<std::string, std::string> PartOf(const TrainerState& state, const std::string& prefix) {
  std::map<std::string, std::string> part;
  for (const auto& [name, value] : state) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = value;
  }
  return part;
}

// Adds the parts of a setting that names files that must not change.
void AddFixedParts(const std::string& name, const FileSetting& setting,
                   std::map<std::string, std::string>* configuration) {
  (*configuration)[name] = setting.form;
  for (const auto& [what, contents] : setting.contents) {
    // Behind the setting itself, which is then compared first.
    (*configuration)[StrCat(name, " (", what, ")")] = contents;
  }
}

// Returns whether an earlier version has written the state, which kept the names of files instead
// of their contents.
bool LacksContents(const TrainerState& state, const std::string& setting) {
  return state.contains(kConfigurationPrefix + setting) && !state.contains(kGivenPrefix + setting);
}

// `earlier`: what a state that lacks these settings was made with.
void CheckConfiguration(const std::map<std::string, std::string>& expected,
                        const std::map<std::string, std::string>& earlier, TrainerState state) {
  const std::string prefix = kConfigurationPrefix;
  for (const auto& [name, value] : earlier) state.emplace(prefix + name, value);
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
                  name.substr(prefix.size()), " = ", value, ", which this program doesn't have");
  }
}

// Returns the kernel choices in the state; none if the checkpoint's training had no tuner.
std::optional<KernelChoices> SavedChoices(const TrainerState& state) {
  const auto saved = state.find(kKernelChoices);
  if (saved == state.end()) return {};
  return ParseKernelChoices(saved->second, StrCat("the checkpoint's state, ", kKernelChoices));
}

// Returns false for an empty file or directory, too.
bool HoldsSomething(const std::string& path) {
  if (!PathExists(path)) return false;
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error) ThrowSystemError("look into", path, error.value());
  return !is_empty;
}

// Throws an Error unless the program has the variable and it may be one number.
void CheckNumber(const Program& program, std::string_view whose, std::string_view what,
                 const std::string& name) {
  const Var* var = program.root()->FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, what, " \"", name, "\": ", whose,
                " has no such variable");
  const bool is_number = var->dtype == DType::kFloat32 || var->dtype == DType::kFloat64 ||
                         var->dtype == DType::kInt32 || var->dtype == DType::kInt64;
  const bool is_one = std::ranges::all_of(var->dims, [](int64_t dim) { return dim <= 1; });
  SKIFF_ENFORCE(var->kind == VarKind::kLoDTensor && is_number && is_one, kInvalidArgument, what,
                " \"", name, "\" of ", whose, " is of ", DTypeName(var->dtype), " ",
                Shape(std::span<const int64_t>(var->dims)),
                ", expected one number (float32, float64, int32 or int64)");
}

void CheckMetric(const Program& program, std::string_view whose, const Metric& metric) {
  CheckNumber(program, whose, StrCat("the metric \"", metric.name, "\""), metric.variable);
  if (metric.weight.empty()) return;
  CheckNumber(program, whose, StrCat("the weight of the metric \"", metric.name, "\""),
              metric.weight);
}

// "2 dropout, mean"
std::string TextOfCounts(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [type, count] : counts) {
    texts.push_back(count == 1 ? type : StrCat(count, " ", type));
  }
  return Join(texts, ", ");
}

// Throws an Error (kFailedPrecondition) for a variable that the program keeps, but neither the
// startup program nor a training step makes.
void CheckInitialized(const Program& program, std::string_view whose, const Program& main,
                      const Scope& scope) {
  const std::set<std::string> written = NamesWritten(main);
  for (const std::string& name : PersistableNames(program)) {
    SKIFF_ENFORCE(scope.Find(name) != nullptr || written.contains(name), kFailedPrecondition,
                  "variable \"", name, "\" of ", whose,
                  ": neither the startup program nor a training step gives it a value");
  }
}

// Throws an Error (kInvalidArgument) if the program declares a parameter in another dtype than the
// main program does. `may_take_masters`: it may be float32 where that has master weights.
void CheckParameters(const Program& program, const char* name, bool may_take_masters,
                     const Program& main) {
  for (const auto& var : program.root()->vars()) {
    const Var* trained = main.root()->FindVar(var->name);
    if (trained == nullptr || trained->dtype == var->dtype) continue;
    if (!var->is_parameter && !trained->is_parameter) continue;
    const bool takes_master = may_take_masters && var->dtype == DType::kFloat32 &&
                              IsHalf(trained->dtype) &&
                              main.root()->FindVar(MasterName(var->name)) != nullptr;
    SKIFF_ENFORCE(takes_master, kInvalidArgument, "parameter \"", var->name, "\" of the ", name,
                  " program is ", var->dtype, ", expected ", trained->dtype,
                  " as in the main program: clone the ", name, " program after minimize");
  }
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
  struct Progress {
    int64_t epoch = 0;
    int64_t batch = 0;   // of the epoch
    ReaderState reader;  // empty: at the start of the epoch
    int64_t step = 0;
    double seconds = 0;
    // Of the epoch so far.
    std::vector<WeightedSum> sums;  // of the metrics
    int64_t samples = 0;
    double epoch_seconds = 0;
    double learning_rate = 0;
    double best_value = 0;
    int64_t best_epoch = 0;
  };

  // Where a metric is among the fetches.
  struct MetricPlace {
    size_t value = 0;
    std::optional<size_t> weight;
    std::vector<size_t> streamed;  // then nothing else
  };

  void TakeInitialWeights();
  // Adds to the settings, and says, what the program computes in.
  void NotePrecision();
  void ListMetrics();
  void CheckOptions() const;
  void CheckPrograms() const;
  // Returns the program of the inference model.
  const Program& Model() const;
  const Metric& decisive_metric() const { return metrics_[decisive_]; }
  // Compiles both programs.
  void Compile(std::shared_ptr<KernelTuner> tuner);
  int64_t EpochsWithoutGain() const;
  bool StoppedEarly() const;
  std::string CheckpointDirectory() const;
  std::string ModelDirectory() const;
  std::string UnaveragedModelDirectory() const;
  std::string LogPath() const;
  std::string CurvePath() const;
  void RefuseToOverwriteTraining() const;
  std::unique_ptr<FileLock> NewLock() const;
  TrainingResult RunUnderLock();
  void CheckDirectory() const;
  void CheckWritten() const;
  // Loads the newest checkpoint and returns its state.
  TrainerState Load();
  std::vector<TrainerState> CallbackStates() const;
  std::vector<TrainerState> SavedCallbackStates(const TrainerState& state) const;
  void RestoreCallbacks(const std::vector<TrainerState>& states) const;
  // Returns the settings that a state must have.
  std::map<std::string, std::string> ExpectedSettings(const TrainerState& state) const;
  void WarnOfUnknownContents(const TrainerState& state) const;
  void ContinueWith(std::optional<KernelChoices> choices);
  // Makes the plans of all batches.
  void PreparePlans();
  // Adds the step's values to the sums of the metrics. Returns the values, of which the loss is the
  // first.
  MetricValues AddMetrics(const BoundProgram& step, int64_t samples,
                          std::vector<WeightedSum>* sums) const;
  // Gives the values of an evaluation's batch to the streaming metrics.
  void Stream(const BoundProgram& step) const;
  MetricValues Means(const std::vector<WeightedSum>& sums) const;
  std::string MeansText(const MetricValues& values) const;
  void GoToProgress();
  // Trains to the end of the epoch. Returns false if it was stopped before.
  bool TrainEpoch(const std::function<bool()>& stop);
  void TrainBatch(const Batch& batch);
  void ReportToCallbacks(const MetricValues& metrics, bool is_averaged);
  void EndEpoch(TrainingLog* log);
  void KeepIfBest(int64_t epoch, double value);
  // Saves the weights as they are now, with the files beside them.
  void SaveModel(const std::string& directory) const;
  void Report(const TrainingRecord& record) const;
  // Tells, after the first step, of ops for which kernels lack, on the device and in half, and of
  // those that are computed again.
  void ReportPlan(const Plan& plan);
  void ReportPlans() const;
  void Save();
  void ReportNotRemoved(const SavedCheckpoint& saved);
  TrainerState SavedState() const;
  Progress RestoredProgress(const TrainerState& state);

  const TrainingProgram* program_;
  Reader* train_;
  Reader* validation_;
  TrainerOptions options_;
  std::ostream* out_;
  std::vector<Metric> metrics_;  // the loss, then the program's
  std::vector<MetricPlace> places_;
  FetchList fetches_;  // of the metrics; a training step fetches the learning rate as well
  FetchList evaluation_fetches_;  // these, and those of streaming metrics
  size_t decisive_ = 0;           // among metrics_
  Executor executor_;
  std::optional<BoundFeeds> training_;
  std::optional<BoundFeeds> evaluation_;
  std::optional<CompiledAverage> average_;  // none if the program averages nothing
  std::unique_ptr<Program> half_model_;     // nullptr: the saved model is float32
  Progress progress_;
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
      options_(std::move(options)),
      out_(out),
      executor_(options_.place) {
  CheckOptions();
  ListMetrics();
  progress_.sums.resize(metrics_.size());
  Compile(options_.compile.tuner);
  if (program->average != nullptr) average_.emplace(program->average.get(), &executor_);
  executor_.Run(*program->startup);
  if (options_.saved_precision.dtype != DType::kFloat32) {
    // An entry may name what is in the training alone, so the model isn't asked.
    CheckKeepFloat32(*program->main, options_.saved_precision.keep_float32);
    half_model_ =
        MakeHalfModel(*Model().CloneForTest(), options_.saved_precision, program->model_outputs);
  }
  CheckPrograms();
  NotePrecision();
  if (!options_.initial_model.empty()) TakeInitialWeights();
}

void Trainer::Implementation::NotePrecision() {
  const ProgramPrecision precision = PrecisionOf(*program_->main);
  const std::map<std::string, std::string> earlier = ProgramPrecision().Settings();
  for (const auto& [name, value] : precision.Settings()) {
    const bool is_new = options_.configuration.emplace(name, value).second;
    if (is_new) options_.earlier_configuration.emplace(name, earlier.at(name));
  }
  const std::string text = program_->half ? program_->half->Text() : precision.Text();
  if (!text.empty()) *out_ << text << std::endl;
}

void Trainer::Implementation::TakeInitialWeights() {
  const InitialWeights weights = TakeWeights(options_.initial_model, *program_->main,
                                             &executor_.scope(), options_.new_parameters);
  *out_ << weights.taken.size() << " parameters begin with those of " << options_.initial_model;
  if (!weights.missing.empty()) {
    *out_ << "; " << weights.missing.size()
          << " that it lacks are new: " << Join(weights.missing, ", ");
  }
  *out_ << std::endl;
}

void Trainer::Implementation::CheckOptions() const {
  SKIFF_ENFORCE(options_.epochs >= 1, kInvalidArgument, "epochs = ", options_.epochs,
                ": expected at least 1");
  SKIFF_ENFORCE(options_.save_every_steps >= 0, kInvalidArgument,
                "save_every = ", options_.save_every_steps, ": expected no negative number");
  SKIFF_ENFORCE(options_.early_stop_epochs >= 0, kInvalidArgument,
                "early_stop = ", options_.early_stop_epochs, ": expected no negative number");
  SKIFF_ENFORCE(train_ != nullptr, kInvalidArgument,
                "there is no reader of the training's batches");
  SKIFF_ENFORCE(validation_ != nullptr, kInvalidArgument,
                "there is no reader of the validation's batches");
  SKIFF_ENFORCE(std::ranges::count(options_.callbacks, nullptr) == 0, kInvalidArgument,
                "a callback is nullptr");
  for (const Reader* reader : {train_, validation_}) {
    SKIFF_ENFORCE(options_.compile.tuner == nullptr || !reader->batch_shapes().empty(),
                  kInvalidArgument,
                  "kernels can't be tuned: a reader doesn't know the shapes of its batches before "
                  "the first step");
  }
}

void Trainer::Implementation::ListMetrics() {
  metrics_ = {{.name = "loss", .variable = program_->loss, .weight = program_->loss_weight}};
  metrics_.insert(metrics_.end(), program_->metrics.begin(), program_->metrics.end());
  // Two metrics may share a variable, a weight for example, which is then fetched once.
  const auto place_in = [&](FetchList* fetches, const std::string& variable) {
    const auto found = std::ranges::find(*fetches, variable);
    const auto place = static_cast<size_t>(found - fetches->begin());
    if (found == fetches->end()) fetches->push_back(variable);
    return place;
  };
  const auto place_of = [&](const std::string& variable) { return place_in(&fetches_, variable); };
  std::vector<std::string> names;
  for (const Metric& metric : metrics_) {
    SKIFF_ENFORCE(std::ranges::count(names, metric.name) == 0, kInvalidArgument,
                  "there are two metrics \"", metric.name, "\"");
    names.push_back(metric.name);
    MetricPlace& place = places_.emplace_back();
    if (metric.streaming != nullptr) {
      SKIFF_ENFORCE(metric.variable.empty() && metric.weight.empty() && !metric.streamed.empty(),
                    kInvalidArgument, "the metric \"", metric.name,
                    "\" is a streaming one: expected variables to stream, and neither a variable "
                    "nor a weight");
      continue;
    }
    SKIFF_ENFORCE(metric.streamed.empty(), kInvalidArgument, "the metric \"", metric.name,
                  "\" streams ", Join(metric.streamed, ", "),
                  ", but `streaming` is nullptr: expected what is made of them");
    place.value = place_of(metric.variable);
    if (!metric.weight.empty()) place.weight = place_of(metric.weight);
  }
  evaluation_fetches_ = fetches_;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    for (const std::string& variable : metrics_[i].streamed) {
      places_[i].streamed.push_back(place_in(&evaluation_fetches_, variable));
    }
  }
  decisive_ =
      static_cast<size_t>(std::ranges::find(names, program_->decisive_metric) - names.begin());
  SKIFF_ENFORCE(decisive_ < names.size(), kInvalidArgument, "the decisive metric \"",
                program_->decisive_metric, "\" is none of ", Join(names, ", "));
}

// Finds what would show only when the first epoch has been trained: in its evaluation, or when the
// model is saved.
void Trainer::Implementation::CheckPrograms() const {
  const Program& main = *program_->main;
  const Program& test = *program_->test;
  CheckParameters(test, "test", /*may_take_masters=*/false, main);
  if (program_->model != nullptr) {
    CheckParameters(*program_->model, "model", /*may_take_masters=*/true, main);
  }
  for (const Metric& metric : metrics_) {
    for (const std::string& variable : metric.streamed) {
      SKIFF_ENFORCE(test.root()->FindVar(variable) != nullptr, kNotFound, "the metric \"",
                    metric.name, "\" \"", variable, "\": the test program has no such variable");
    }
    if (metric.streaming != nullptr) continue;
    CheckMetric(main, "the main program", metric);
    CheckMetric(test, "the test program", metric);
  }
  CheckNumber(main, "the main program", "the learning rate", program_->learning_rate);
  CheckInitialized(test, "the test program", main, executor_.scope());
  try {
    const auto model =
        MakeInferenceProgram(Model(), program_->model_inputs, program_->model_outputs, {});
    CheckInitialized(*model, "its program", main, executor_.scope());
  } catch (const Error& error) {
    throw error.WithContext("the model that the training would save");
  }
}

const Program& Trainer::Implementation::Model() const {
  if (half_model_ != nullptr) return *half_model_;
  return program_->model != nullptr ? *program_->model : *program_->test;
}

void Trainer::Implementation::Compile(std::shared_ptr<KernelTuner> tuner) {
  CompileOptions options = options_.compile;
  options.tuner = std::move(tuner);
  FetchList of_training = fetches_;
  of_training.push_back(program_->learning_rate);
  training_.emplace(executor_.Compile(*program_->main, options), of_training);
  evaluation_.emplace(executor_.Compile(*program_->test, options), evaluation_fetches_);
}

std::string Trainer::Implementation::CheckpointDirectory() const {
  return JoinPath(options_.output_dir, "checkpoints");
}

std::string Trainer::Implementation::ModelDirectory() const {
  return JoinPath(options_.output_dir, "model");
}

std::string Trainer::Implementation::UnaveragedModelDirectory() const {
  return JoinPath(options_.output_dir, "unaveraged_model");
}

std::string Trainer::Implementation::LogPath() const {
  return JoinPath(options_.output_dir, "training_log.jsonl");
}

std::string Trainer::Implementation::CurvePath() const {
  return JoinPath(options_.output_dir, "learning_curve.svg");
}

void Trainer::Implementation::RefuseToOverwriteTraining() const {
  SKIFF_ENFORCE(!HasCheckpoint(CheckpointDirectory()), kFailedPrecondition, options_.output_dir,
                " holds a training: resume it, or choose another output directory");
  for (const std::string& path : {ModelDirectory(), LogPath()}) {
    SKIFF_ENFORCE(!HoldsSomething(path), kFailedPrecondition, path,
                  " is of a training without a checkpoint to resume from: remove it, or choose "
                  "another output directory");
  }
}

// Two trainings in one directory would delete each other's checkpoints, each taking them for older
// ones of its own.
std::unique_ptr<FileLock> Trainer::Implementation::NewLock() const {
  auto lock = std::make_unique<FileLock>(JoinPath(options_.output_dir, ".lock"));
  SKIFF_ENFORCE(lock->is_held(), kFailedPrecondition, "another training is writing in ",
                options_.output_dir, ": wait for its end, or choose another output directory");
  return lock;
}

void Trainer::Implementation::Resume() {
  // Before taking the lock, which would leave its file in a directory that has nothing to do with
  // trainings.
  SKIFF_ENFORCE(HasCheckpoint(CheckpointDirectory()), kNotFound, CheckpointDirectory(),
                " holds no checkpoint");
  std::unique_ptr<FileLock> taken = lock_ == nullptr ? NewLock() : nullptr;
  const TrainerState state = Load();
  // Kept only now: if loading fails, the trainer must be as it was.
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

void Trainer::Implementation::LoadForEvaluation() { Load(); }

TrainerState Trainer::Implementation::Load() {
  // check_state runs before the variables are compared. So a changed option is reported as such,
  // and not as the variables that differ because of it.
  Progress restored;
  std::optional<KernelChoices> choices;
  const std::vector<TrainerState> callbacks = CallbackStates();
  const auto load = [&] {
    return LoadLatestCheckpoint(CheckpointDirectory(), *program_->main, &executor_.scope(),
                                {.check_state = [&](const TrainerState& state) {
                                  CheckConfiguration(ExpectedSettings(state),
                                                     options_.earlier_configuration, state);
                                  restored = RestoredProgress(state);
                                  choices = SavedChoices(state);
                                  RestoreCallbacks(SavedCallbackStates(state));
                                }});
  };
  LoadedCheckpoint loaded;
  try {
    loaded = load();
  } catch (...) {
    RestoreCallbacks(callbacks);
    throw;
  }
  for (const RefusedCheckpoint& refused : loaded.refused) {
    *out_ << "skipped " << refused.path << ": " << refused.reason << "\n";
  }
  restored.step = loaded.step;
  progress_ = restored;
  earlier_seconds_ = restored.seconds;
  *out_ << "resumed from " << loaded.path << ": step " << progress_.step << ", epoch "
        << progress_.epoch + 1 << ", batch " << progress_.batch << "\n";
  WarnOfUnknownContents(loaded.state);
  ContinueWith(std::move(choices));
  return std::move(loaded.state);
}

std::vector<TrainerState> Trainer::Implementation::CallbackStates() const {
  std::vector<TrainerState> states;
  for (const auto& callback : options_.callbacks) states.push_back(callback->State());
  return states;
}

std::vector<TrainerState> Trainer::Implementation::SavedCallbackStates(
    const TrainerState& state) const {
  std::vector<TrainerState> states;
  for (size_t i = 0; i < options_.callbacks.size(); ++i) {
    states.push_back(PartOf(state, CallbackPrefix(i)));
    const auto saved = state.find(CallbackName(i));
    const std::string name = options_.callbacks[i]->Name();
    SKIFF_ENFORCE(saved == state.end() || saved->second == name, kFailedPrecondition,
                  "the checkpoint has the state of callback ", i, ", \"",
                  saved == state.end() ? "" : saved->second, "\", but callback ", i, " is \"", name,
                  "\": expected the callbacks of the earlier training, in their order");
  }
  return states;
}

void Trainer::Implementation::RestoreCallbacks(const std::vector<TrainerState>& states) const {
  for (size_t i = 0; i < states.size(); ++i) {
    // A callback without a state, or one that the checkpoint's training didn't have.
    if (states[i].empty()) continue;
    try {
      options_.callbacks[i]->Restore(states[i]);
    } catch (const Error& error) {
      throw error.WithContext(StrCat("callback ", i));
    }
  }
}

std::map<std::string, std::string> Trainer::Implementation::ExpectedSettings(
    const TrainerState& state) const {
  std::map<std::string, std::string> expected = options_.configuration;
  for (const auto& [name, setting] : options_.file_settings) {
    if (LacksContents(state, name)) {
      expected[name] = setting.value;
    } else {
      AddFixedParts(name, setting, &expected);
    }
  }
  return expected;
}

void Trainer::Implementation::WarnOfUnknownContents(const TrainerState& state) const {
  for (const auto& [name, setting] : options_.file_settings) {
    if (!LacksContents(state, name)) continue;
    *out_ << "warning: an earlier version wrote the checkpoint, which doesn't say what " << name
          << " = " << setting.value
          << " held: the result is that of the unbroken training only if it holds the same now\n";
  }
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
  Compile(tuner);
}

void Trainer::Implementation::PreparePlans() {
  // All choices before the first step: a checkpoint in the middle of the first epoch must hold them
  // all, since timings made after a resume would differ.
  for (const auto& feeds : train_->batch_shapes()) training_->Prepare(feeds);
  for (const auto& feeds : validation_->batch_shapes()) evaluation_->Prepare(feeds);
  *out_ << options_.compile.tuner->Summary() << std::endl;
}

// Else the next file would make the directory anew, without its lock and without what it held.
void Trainer::Implementation::CheckDirectory() const {
  SKIFF_ENFORCE(
      lock_->is_in_place(), kDataLoss, options_.output_dir,
      " was removed, renamed or replaced since the training has taken it, which writes no further: "
      "give it back its name and resume, or begin anew in another output directory");
}

// The files that the result promises.
void Trainer::Implementation::CheckWritten() const {
  CheckDirectory();
  std::vector<std::string> paths = {LogPath(), CurvePath()};
  std::vector<std::string> models = {ModelDirectory()};
  if (average_) models.push_back(UnaveragedModelDirectory());
  for (const std::string& model : models) {
    paths.push_back(JoinPath(model, InferenceModelFiles().model_filename));
    paths.push_back(JoinPath(model, kCombinedParamsFile));
    for (const auto& [name, text] : options_.model_files) paths.push_back(JoinPath(model, name));
  }
  constexpr const char* kRemoved =
      " was written by the training, but isn't there any more: somebody removed it";
  for (const std::string& path : paths) {
    SKIFF_ENFORCE(PathExists(path), kDataLoss, path, kRemoved);
  }
  SKIFF_ENFORCE(HasCheckpoint(CheckpointDirectory()), kDataLoss, "a checkpoint in ",
                CheckpointDirectory(), kRemoved);
}

TrainingResult Trainer::Implementation::Run() {
  if (lock_ == nullptr) {
    CreateDirectories(options_.output_dir);
    lock_ = NewLock();
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
  // It may have been removed since the trainer has resumed.
  CheckDirectory();
  if (!is_continuation_) RefuseToOverwriteTraining();
  is_continuation_ = true;
  // Under the lock: no other training's temporary files are in use.
  for (const std::string& directory :
       {options_.output_dir, ModelDirectory(), UnaveragedModelDirectory()}) {
    RemoveTempFiles(directory);
  }
  ReportNotRemoved(FinishLastSave(CheckpointDirectory()));
  // Drops the lines of epochs that this run will train again.
  TrainingLog log(LogPath(), progress_.epoch);
  for (const std::string& message : log.warnings()) *out_ << "warning: " << message << "\n";
  control_.emplace(*program_, &executor_.scope());
  const StopRequest request;
  const auto stop = [&] {
    return request.signal() != 0 || control_->is_stopped() ||
           (options_.stop_after_steps > 0 && progress_.step >= options_.stop_after_steps);
  };
  if (program_->half) {
    AtomicWriteFile(JoinPath(options_.output_dir, "precision.txt"), program_->half->Details());
  }
  if (options_.compile.tuner != nullptr) PreparePlans();
  TrainingResult result;
  result.finished = true;
  while (progress_.epoch < options_.epochs && !StoppedEarly()) {
    if (!TrainEpoch(stop)) {
      Save();
      result.finished = false;
      result.signal = request.signal();
      break;
    }
    // The epoch ends with a checkpoint, so a stop between epochs loses nothing.
    EndEpoch(&log);
  }
  if (result.finished && StoppedEarly()) {
    *out_ << "stopped early: no better " << decisive_metric().name << " in " << EpochsWithoutGain()
          << " epochs\n";
  }
  if (result.finished) CheckWritten();
  result.decisive_metric = decisive_metric();
  result.best_value = progress_.best_value;
  result.best_epoch = progress_.best_epoch;
  result.records = log.records();
  result.weights_hash = WeightsHash();
  ReportPlans();
  return result;
}

void Trainer::Implementation::ReportPlan(const Plan& plan) {
  if (std::exchange(has_reported_plan_, true)) return;
  // Each such op moves its arguments from the device and its results back.
  const std::string on_host = TextOfCounts(OpsOnHost(plan));
  if (!on_host.empty()) {
    *out_ << "warning: these ops don't run on " << options_.place << ", but on the CPU: " << on_host
          << std::endl;
  }
  const std::string widened = TextOfCounts(WidenedOps(plan));
  if (!widened.empty()) {
    *out_ << "in float32, between casts, for want of kernels that take half: " << widened
          << std::endl;
  }
  const std::string again = RecomputationText(plan.recomputed);
  if (!again.empty()) *out_ << "memory: " << again << std::endl;
}

// Full batches and the last one are two kinds; ragged ones are more.
void Trainer::Implementation::ReportPlans() const {
  constexpr int64_t kUsual = 2;
  const PreparationStatistics preparation = training_->preparation();
  if (preparation.plans <= kUsual) return;
  const double seconds = preparation.plan_seconds + preparation.kernel_seconds;
  // Plans aren't saved, so the time before a resume has nothing to do with these.
  const double since_resume = progress_.seconds - earlier_seconds_;
  *out_ << preparation.plans << " plans and " << preparation.kernels << " kernels prepared in "
        << FormatFixed(seconds, 2) << " s, "
        << FormatFixed(100 * seconds / std::max(since_resume, seconds), 1) << " % of the time\n";
}

int64_t Trainer::Implementation::EpochsWithoutGain() const {
  return progress_.epoch - progress_.best_epoch;
}

// Depends on saved state alone, so that a resumed training ends where the unbroken one does.
bool Trainer::Implementation::StoppedEarly() const {
  return options_.early_stop_epochs > 0 && EpochsWithoutGain() >= options_.early_stop_epochs;
}

MetricValues Trainer::Implementation::AddMetrics(const BoundProgram& step, int64_t samples,
                                                 std::vector<WeightedSum>* sums) const {
  MetricValues values;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming != nullptr) continue;
    const MetricPlace& place = places_[i];
    const double value = NumberIn(step.fetch(place.value), metrics_[i].name);
    const double weight = place.weight ? NumberIn(step.fetch(*place.weight), metrics_[i].name)
                                       : static_cast<double>(samples);
    (*sums)[i].Add(value, weight);
    values.Add(metrics_[i].name, value);
  }
  return values;
}

MetricValues Trainer::Implementation::Means(const std::vector<WeightedSum>& sums) const {
  MetricValues means;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (sums[i].weight != 0) means.Add(metrics_[i].name, sums[i].Mean());
  }
  return means;
}

std::string Trainer::Implementation::MeansText(const MetricValues& values) const {
  std::string text;
  for (const Metric& metric : metrics_) {
    if (!values.contains(metric.name)) continue;
    text += StrCat(text.empty() ? "" : "  ", metric.name, " ",
                   MetricText(metric, values.at(metric.name)));
  }
  return text;
}

MetricValues Trainer::Implementation::Evaluate() {
  // Always epoch 0: each evaluation sees the same samples in the same order, so its sums round in
  // the same way.
  validation_->StartEpoch(0);
  std::vector<WeightedSum> sums(metrics_.size());
  for (const Metric& metric : metrics_) {
    if (metric.streaming != nullptr) metric.streaming->Reset();
  }
  Batch batch;
  while (validation_->Next(&batch)) {
    const BoundProgram& step = evaluation_->Step(batch.feeds);
    AddMetrics(step, batch.samples, &sums);
    Stream(step);
  }
  MetricValues values;
  const MetricValues means = Means(sums);
  for (const Metric& metric : metrics_) {
    if (metric.streaming != nullptr) values.Add(metric.name, metric.streaming->Value());
    if (means.contains(metric.name)) values.Add(metric.name, means.at(metric.name));
  }
  return values;
}

void Trainer::Implementation::Stream(const BoundProgram& step) const {
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming == nullptr) continue;
    std::vector<Tensor> values;
    for (const size_t place : places_[i].streamed) values.push_back(step.fetch(place));
    try {
      metrics_[i].streaming->Add(values);
    } catch (const Error& error) {
      throw error.WithContext(StrCat("the metric \"", metrics_[i].name, "\""));
    }
  }
}

std::unique_ptr<ReplacedValues> Trainer::Implementation::ApplyAverages() {
  if (!average_) return nullptr;
  return std::unique_ptr<ReplacedValues>(new ReplacedValues(average_->Apply()));
}

MetricValues Trainer::Implementation::EvaluateAveraged() {
  if (!average_ || progress_.step == 0) return {};
  const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
  return Evaluate();
}

std::string Trainer::Implementation::WeightsHash() const {
  return skiff::WeightsHash(executor_.scope(), PersistableNames(*program_->test));
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
  training::Progress bar(StrCat("epoch ", progress_.epoch + 1, "/", options_.epochs),
                         progress_.batch, train_->batches_in_epoch(), options_.is_terminal, out_);
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
    bar.Update(progress_.batch, MeansText(Means(progress_.sums)));
    // By steps since the very beginning, so that a resumed training saves at the same steps.
    if (options_.save_every_steps > 0 && progress_.step % options_.save_every_steps == 0) Save();
  }
}

void Trainer::Implementation::TrainBatch(const Batch& batch) {
  const BoundProgram& step = training_->Step(batch.feeds);
  ReportPlan(step.plan());
  // Compile has put it after the metrics.
  progress_.learning_rate = NumberIn(step.fetch(fetches_.size()), "learning_rate");
  const MetricValues values = AddMetrics(step, batch.samples, &progress_.sums);
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
      .train = Means(progress_.sums),
      .validation = validation,
      .averaged = averaged};
  // An evaluation takes its time.
  CheckDirectory();
  Report(record);
  log->Append(record);
  AtomicWriteFile(CurvePath(), RenderLearningCurve(options_.title, log->records()));
  const MetricValues& deciding = averaged.empty() ? validation : averaged;
  const std::string& name = decisive_metric().name;
  KeepIfBest(record.epoch, deciding.contains(name) ? deciding.at(name) : NAN);
  for (const auto& callback : options_.callbacks) callback->OnEpoch(record, &*control_);
  ++progress_.epoch;
  progress_.batch = 0;
  // Empty means the start of the next epoch, whatever the reader's state looks like.
  progress_.reader.clear();
  progress_.sums.assign(metrics_.size(), {});
  progress_.epoch_seconds = 0;
  progress_.samples = 0;
  Save();
}

void Trainer::Implementation::KeepIfBest(int64_t epoch, double value) {
  // Strictly better: of equal epochs the first one stays.
  const bool is_better = decisive_metric().larger_is_better ? value > progress_.best_value
                                                            : value < progress_.best_value;
  // A comparison with NaN is always false, so without this a NaN would stay the best value for
  // ever.
  const bool is_first = progress_.best_epoch == 0 || std::isnan(progress_.best_value);
  if (!is_first && !is_better) return;
  progress_.best_value = value;
  progress_.best_epoch = epoch;
  if (average_) SaveModel(UnaveragedModelDirectory());
  const std::unique_ptr<ReplacedValues> averages = ApplyAverages();
  SaveModel(ModelDirectory());
}

void Trainer::Implementation::SaveModel(const std::string& directory) const {
  const std::unique_ptr<Executor> rounded =
      half_model_ == nullptr ? nullptr : ValuesFor(*half_model_, executor_.scope());
  SaveInferenceModel(directory, program_->model_inputs, program_->model_outputs, Model(),
                     rounded == nullptr ? executor_.scope() : rounded->scope(),
                     // In one file, so that it never holds the weights of two epochs, whenever
                     // writing is cut off.
                     {.files = {.params_filename = kCombinedParamsFile}});
  for (const auto& [name, text] : options_.model_files) {
    AtomicWriteFile(JoinPath(directory, name), text);
  }
}

void Trainer::Implementation::Report(const TrainingRecord& record) const {
  *out_ << "epoch " << record.epoch << "/" << options_.epochs << "  " << MeansText(record.train)
        << "  |  validation " << MeansText(record.validation);
  if (!record.averaged.empty()) *out_ << "  |  averaged " << MeansText(record.averaged);
  const Scope& scope = executor_.scope();
  const Tensor* skipped = scope.Find(kSkippedUpdates);
  if (skipped != nullptr) {
    *out_ << "  |  " << CopyToCpu(*skipped).Item<int64_t>() << " updates skipped so far";
  }
  const Tensor* scale = scope.Find(kLossScale);
  if (scale != nullptr) *out_ << "  |  loss scale " << CopyToCpu(*scale).Item<float>();
  *out_ << "  |  " << FormatFixed(record.samples_per_second, 0) << " " << options_.samples << "/s"
        << std::endl;
}

void Trainer::Implementation::Save() {
  CheckDirectory();
  ReportNotRemoved(SaveCheckpoint(CheckpointDirectory(), *program_->main, executor_.scope(),
                                  progress_.step, SavedState()));
}

void Trainer::Implementation::ReportNotRemoved(const SavedCheckpoint& saved) {
  for (const std::string& message : saved.not_removed) *out_ << "warning: " << message << "\n";
}

TrainerState Trainer::Implementation::SavedState() const {
  TrainerState state = {
      {"epoch", std::to_string(progress_.epoch)},
      {"batch", std::to_string(progress_.batch)},
      {"seconds", FormatShortest(progress_.seconds)},
      {"samples", std::to_string(progress_.samples)},
      {"epoch_seconds", FormatShortest(progress_.epoch_seconds)},
      {"learning_rate", FormatShortest(progress_.learning_rate)},
      {"best_value", FormatShortest(progress_.best_value)},
      {"best_epoch", std::to_string(progress_.best_epoch)},
      {kThreads, std::to_string(omp_get_max_threads())},
  };
  for (size_t i = 0; i < metrics_.size(); ++i) {
    state[SumName(metrics_[i])] = FormatShortest(progress_.sums[i].sum);
    state[WeightName(metrics_[i])] = FormatShortest(progress_.sums[i].weight);
  }
  for (const auto& [name, value] : progress_.reader) state[kReaderPrefix + name] = value;
  const std::vector<TrainerState> callbacks = CallbackStates();
  for (size_t i = 0; i < callbacks.size(); ++i) {
    if (!callbacks[i].empty()) state[CallbackName(i)] = options_.callbacks[i]->Name();
    for (const auto& [name, value] : callbacks[i]) state[CallbackPrefix(i) + name] = value;
  }
  if (options_.compile.tuner != nullptr) {
    state[kKernelChoices] = PrintKernelChoices(options_.compile.tuner->choices());
  }
  std::map<std::string, std::string> configuration = options_.configuration;
  for (const auto& [name, setting] : options_.file_settings) {
    AddFixedParts(name, setting, &configuration);
    state[kGivenPrefix + name] = setting.value;
  }
  for (const auto& [name, value] : configuration) state[kConfigurationPrefix + name] = value;
  return state;
}

Trainer::Implementation::Progress Trainer::Implementation::RestoredProgress(
    const TrainerState& state) {
  Progress restored;
  restored.epoch = IntegerOf(state, "epoch");
  restored.batch = IntegerOf(state, "batch");
  SKIFF_ENFORCE(restored.epoch >= 0 && restored.batch >= 0, kDataLoss,
                "the checkpoint's state is in epoch ", restored.epoch, ", batch ", restored.batch,
                ": expected no negative numbers");
  restored.seconds = NumberOf(state, "seconds");
  for (const Metric& metric : metrics_) {
    restored.sums.push_back(
        {.sum = NumberOf(state, SumName(metric)), .weight = NumberOf(state, WeightName(metric))});
  }
  restored.samples = IntegerOf(state, "samples");
  restored.epoch_seconds = NumberOf(state, "epoch_seconds");
  restored.learning_rate = NumberOf(state, "learning_rate");
  restored.best_value = NumberOf(state, "best_value");
  restored.best_epoch = IntegerOf(state, "best_epoch");
  restored.reader = PartOf(state, kReaderPrefix);
  SKIFF_ENFORCE(restored.batch == 0 || !restored.reader.empty(), kDataLoss,
                "the checkpoint's state is in batch ", restored.batch,
                " of an epoch, but holds no state of the reader");
  if (restored.reader.empty()) return restored;
  try {
    // Only checks whether the reader accepts the state; Run goes there when it begins.
    train_->Restore(restored.reader);
  } catch (const Error& error) {
    throw error.WithContext("the reader");
  }
  return restored;
}

}  // namespace skiff::training
