// The constructor chooses kernels and plans the storage, which takes no memory worth mentioning;
// that is enough to compare plans. Allocate takes the memory and resolves every argument to a
// pointer. A run then walks steps_: save what a failure must restore, refresh derived forms, run
// kernels, copy fetches.
#include "framework/executor/prepared_plan.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string_view>

#include "framework/analysis/memory_report.h"
#include "framework/base/error.h"
#include "framework/executor/scope_overlap.h"
#include "framework/executor/storage.h"
#include "framework/op/background_kernel.h"
#include "framework/tensor/replaced_values.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

// Startup and main program both count their ops from 0. Without this mark in the id, a parameter
// would be initialized with the very random numbers by which an op of the first training step drops
// elements.
constexpr uint64_t kTraining = uint64_t{1} << 31;

// A generation that no scope reaches.
constexpr uint64_t kNeverCurrent = std::numeric_limits<uint64_t>::max();

}  // namespace

PreparedPlan::PreparedPlan(Plan plan, const Inputs& inputs)
    : plan_(std::move(plan)),
      program_(inputs.program),
      scope_(*inputs.scope),
      trains_(inputs.trains),
      poisons_(inputs.poison_dead_memory && plan_.place.is_cpu()),
      lods_(plan_),
      state_{.device = {plan_.place, nullptr}, .seed = inputs.program->seed} {
  std::vector<PreparedKernel> kernels = PrepareKernels(
      {.registry = *inputs.registry, .forced = inputs.forced_kernels, .tuner = inputs.tuner},
      &plan_);
  steps_.resize(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) steps_[i].kernel = std::move(kernels[i]);
  // After the kernels, since only prepared kernels know their workspaces.
  PlanStorage(&plan_);
}

void PreparedPlan::Allocate() {
  constexpr size_t kListed = 8;
  try {
    AllocateAll();
    // Says what fills the arena: the allocator's own message only knows the number of bytes.
  } catch (const OutOfMemoryError& error) {
    throw Error(error.code(),
                StrCat(error.what(), "\n", DescribePeak(ReportMemory(plan_), kListed)));
  }
}

void PreparedPlan::AllocateAll() {
  values_ = std::make_unique<BoundValues>(plan_, &scope_);
  try {
    FindStepCounter();
    BindSteps();
    BindKernels();
    MakeFetches();
    // After BoundValues, which advances the generation if it reserves persistables.
    generation_ = scope_.generation();
    rollback_.emplace(plan_, *values_);
    if (poisons_) poison_.emplace(plan_, *values_);
  } catch (...) {
    // The plan points to what is erased here, so it must be made again.
    if (values_->EraseHidden()) generation_ = kNeverCurrent;
    throw;
  }
}

void PreparedPlan::FindStepCounter() {
  Tensor* counter = scope_.FindMutable(kStepCounterName);
  SKIFF_ENFORCE(counter != nullptr && counter->dtype() == DType::kInt64 && counter->has_data() &&
                    counter->element_count() == 1,
                kFailedPrecondition, "the scope must hold the step counter \"", kStepCounterName,
                "\" as int64 [1]");
  step_counter_ = counter->data<int64_t>();
}

void PreparedPlan::BindSteps() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    BindStep(plan_.instructions[i], &step);
    if (step.kernel.derived.empty()) continue;
    step.derived.emplace(plan_, plan_.instructions[i], std::exchange(step.kernel.derived, {}),
                         &scope_, &step.context);
  }
}

void PreparedPlan::BindStep(const Instruction& instruction, Step* step) {
  KernelContext& context = step->context;
  const auto* background = dynamic_cast<const BackgroundKernel*>(step->kernel.kernel.get());
  for (const ValueId input : instruction.inputs) context.inputs.push_back(values_->Of(input));
  for (const ValueId output : instruction.outputs) {
    context.outputs.push_back(values_->Of(output));
    if (!output || plan_[output].storage != Storage::kScope) continue;
    step->written_versions.push_back(scope_.Version(plan_[output].name));
    // The kernel returns before it has written this variable. Whoever reads it through the scope,
    // or here as a fetch or for a rollback, must wait first.
    if (background != nullptr) values_->SetPending(output, background->pending());
  }
  for (const int64_t offset : instruction.workspace_offsets) {
    context.workspaces.push_back(values_->InArena(offset));
  }
  context.device_context = &state_.device;
  context.seed = &state_.seed;
  context.step = &state_.step;
  context.op_id = static_cast<uint64_t>(instruction.op->id) | (trains_ ? kTraining : 0);
}

// Binds every kernel that reads no feed. The others are bound by BindFeeds, each time the feeds'
// addresses change.
void PreparedPlan::BindKernels() {
  const auto is_feed = [this](ValueId value) {
    return value && plan_[value].storage == Storage::kFeed;
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (std::ranges::any_of(plan_.instructions[i].inputs, is_feed)) {
      feed_readers_.push_back(i);
    } else {
      steps_[i].kernel.kernel->Bind(steps_[i].context);
    }
  }
}

void PreparedPlan::MakeFetches() {
  for (const ValueId fetch : plan_.fetches) {
    const TensorMeta& meta = plan_[fetch].meta;
    fetches_.emplace_back(meta.shape, meta.dtype, Place::Cpu(), meta.layout);
  }
}

void PreparedPlan::BindFeeds(const FeedList& feeds) {
  // A write to that variable would change the feed before later instructions have read it.
  for (const auto& [feed, fed] : feeds) {
    for (const auto& [name, tensor] : values_->written()) {
      SKIFF_ENFORCE(!ShareBytes(fed, *tensor), kInvalidArgument, "feed \"", feed,
                    "\" shares its memory with \"", name,
                    "\", which the run writes: feed a copy (CopyToCpu)");
    }
  }
  for (size_t i = 0; i < feeds.size(); ++i) *values_->Of(plan_.feeds[i]) = feeds[i].second;
  lods_.Bind(feeds, values_.get());
  for (const size_t i : feed_readers_) steps_[i].kernel.kernel->Bind(steps_[i].context);
}

void PreparedPlan::ReleaseFeeds() {
  for (const ValueId feed : plan_.feeds) *values_->Of(feed) = Tensor();
}

void PreparedPlan::RunStep(Step& step) {
  if (step.derived) step.derived->Refresh(step.context);
  step.kernel.kernel->Run(step.context);
  // Derived forms of these variables are now out of date, in this plan and in others.
  for (uint64_t* version : step.written_versions) ++*version;
}

// A training step would train the averages instead of the parameters, and ReplacedValues would
// later overwrite what it wrote.
void PreparedPlan::CheckReplacedValues() const {
  SKIFF_ENFORCE(!trains_, kFailedPrecondition,
                "a training step, but the scope has replaced values, averages for example: restore "
                "its own first");
  for (const auto& [name, tensor] : values_->written()) {
    CheckNotReplaced(scope_, name, "a run that writes a variable");
  }
}

void PreparedPlan::StartRun() {
  if (scope_.has_replaced_values()) CheckReplacedValues();
  if (fetches_.empty()) MakeFetches();
  state_.step = static_cast<uint64_t>(*step_counter_);
  // Before the first kernel: these are the variables that may change before an op refuses its data.
  rollback_->Save();
  // A value that is read before it is written then shows, too, not only one that is read too late.
  if (poison_) poison_->PoisonAll();
}

void PreparedPlan::Undo() {
  // Versions aren't put back. They have advanced with the writes that are undone, so forms made
  // since are remade, which is all that a version is for.
  rollback_->Restore();
  // As in AllocateAll.
  if (values_->EraseHidden()) generation_ = kNeverCurrent;
}

template <typename RunOne>
void PreparedPlan::RunSteps(const RunOne& run_one) {
  StartRun();
  for (size_t i = 0; i < steps_.size(); ++i) {
    try {
      run_one(i);
      if (poison_) poison_->PoisonAfter(i);
    } catch (const Error& error) {
      Undo();
      ThrowIn(error, plan_.instructions[i]);
    } catch (...) {
      Undo();
      throw;
    }
  }
  try {
    FinishRun();
  } catch (...) {
    Undo();
    throw;
  }
}

void PreparedPlan::Run() {
  RunSteps([this](size_t i) { RunStep(steps_[i]); });
}

std::vector<InstructionTime> PreparedPlan::TimedRun() {
  using Clock = std::chrono::steady_clock;
  std::vector<InstructionTime> times;
  RunSteps([&](size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const Clock::time_point start = Clock::now();
    RunStep(steps_[i]);
    InstructionTime time;
    time.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    time.type = instruction.Name();
    time.kernel = steps_[i].kernel.def == nullptr ? "" : steps_[i].kernel.def->name;
    const auto output = std::ranges::find_if(
        instruction.outputs, [](ValueId value) { return static_cast<bool>(value); });
    if (output != instruction.outputs.end()) time.output = plan_[*output].name;
    times.push_back(std::move(time));
  });
  return times;
}

void PreparedPlan::FinishRun() {
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const Tensor& value = *values_->Of(plan_.fetches[i]);
    values_->Await(value);
    CopyTensor(value, &fetches_[i]);
    fetches_[i].ShareLoD(value.shared_lod());
  }
  // Last, since nothing takes it back: once the persistables are visible and the step is counted,
  // the run has happened.
  values_->Reveal();
  if (trains_) ++*step_counter_;
}

PlanStatistics PreparedPlan::statistics() const {
  PlanStatistics statistics;
  statistics.max_live_bytes = plan_.max_live_bytes;
  statistics.planned_bytes = plan_.planned_bytes;
  statistics.unshared_bytes = plan_.unshared_bytes;
  for (const Step& step : steps_) {
    if (step.derived) statistics.derived_bytes += step.derived->kept_bytes();
  }
  statistics.rollback_bytes = rollback_->bytes();
  // From the plan: a variable may have left the scope since.
  // A variable has several values but one storage.
  std::set<std::string_view> seen;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || !seen.insert(value.name).second) continue;
    statistics.persistable_bytes += StorageBytes(value);
  }
  statistics.instructions = static_cast<int64_t>(steps_.size());
  statistics.layout_copies = std::ranges::count_if(
      plan_.instructions, [](const Instruction& i) { return i.kind == InstructionKind::kCopy; });
  return statistics;
}

}  // namespace skiff
