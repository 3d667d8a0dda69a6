// The constructor chooses kernels and plans the storage, which takes no memory worth mentioning;
// that is enough to compare plans. Allocate takes the memory and resolves every argument to a
// pointer. A run then walks steps_: save what a failure must restore, refresh derived forms, run
// kernels, copy fetches.
#include "framework/executor/prepared_plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "framework/analysis/argument_places.h"
#include "framework/analysis/memory_report.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/loop_kernel.h"
#include "framework/executor/row_counts.h"
#include "framework/executor/scope_overlap.h"
#include "framework/executor/storage.h"
#include "framework/executor/timed_body.h"
#include "framework/plan/loop.h"
#include "framework/tensor/replaced_values.h"
#include "framework/tensor/shared_writes.h"
#include "framework/tensor/tensor_array.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

bool RunsOnHost(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kCopy) return instruction.place.is_cpu();
  return plan[instruction.inputs[0]].place.is_cpu() && plan[instruction.outputs[0]].place.is_cpu();
}

// Returns whether the host itself reads or writes values of the plan to run the instruction, or to
// issue it to the device.
bool UsesHostArena(const Plan& plan, const Instruction& instruction) {
  if (RunsOnHost(plan, instruction)) return true;
  if (instruction.kind == InstructionKind::kCopy) return false;
  const auto is_there = [&](ValueId value) {
    return value && plan[value].place.is_cpu() && plan[value].storage == Storage::kArena;
  };
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (instruction.reads_data[i] && is_there(instruction.inputs[i])) return true;
  }
  return std::ranges::any_of(instruction.outputs, is_there);
}

// Returns whether the host does more in an iteration than put work into the stream: it makes room
// for the elements of arrays, or runs ops.
bool HostWorksIn(const Loop& loop) {
  return std::ranges::any_of(loop.scope_values,
                             [](const LoopScopeValue& value) { return value.index < 0; }) ||
         std::ranges::any_of(loop.body.instructions,
                             [](const Instruction& inner) { return inner.place.is_cpu(); });
}

// A generation that no scope reaches.
constexpr uint64_t kNeverCurrent = std::numeric_limits<uint64_t>::max();

// Returns whether a fetch is the value itself and no copy of it. The stacks of loops, which later
// segments read, are arrays.
bool IsShared(const PlanValue& value) {
  return value.storage == Storage::kKernelOwned || value.meta.is_array;
}

}  // namespace

PreparedPlan::PreparedPlan(Segment segment, const Inputs& inputs)
    : plan_(std::move(segment.plan)),
      first_op_(segment.first_op),
      next_op_(segment.next_op),
      is_last_segment_(segment.is_last),
      fetched_names_(std::move(segment.fetches)),
      arrays_before_(std::move(segment.arrays_before)),
      arrays_after_(std::move(segment.arrays_after)),
      gradients_before_(std::move(segment.gradients_before)),
      gradients_after_(std::move(segment.gradients_after)),
      contents_before_(std::move(segment.contents_before)),
      contents_after_(std::move(segment.contents_after)),
      program_(inputs.program),
      registry_(*inputs.registry),
      scope_(*inputs.scope),
      trains_(inputs.trains),
      link_(inputs.link == nullptr ? DeviceLink::Host() : inputs.link),
      environment_{
          .registry = registry_,
          .math = inputs.math,
          .link = link_.get(),
          .scope = &scope_,
          .trains = trains_,
          .poisons = (inputs.poison_dead_memory && plan_.place.is_cpu()) || plan_.has_guards,
          .prepare_loop = &PrepareLoop},
      makes_graphs_(inputs.graphs && is_on_device()),
      arena_(inputs.arena),
      statistics_(inputs.statistics),
      shapes_(*inputs.registry, plan_, inputs.counts),
      state_{.device = link_->context(), .seed = inputs.program->seed} {
  // A pass that breaks this would have a kernel touch memory that it can't.
  if (is_on_device()) CheckPlaces(plan_);
  std::vector<PreparedKernel> kernels =
      PrepareKernels(Selection(inputs.forced_kernels, inputs.tuner, inputs.rows_vary), &plan_);
  statistics_->kernels += static_cast<int64_t>(kernels.size());
  steps_.resize(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) steps_[i].kernel = std::move(kernels[i]);
  // After the kernels, since only prepared kernels know their workspaces.
  PlanStorage(&plan_);
}

PreparedPlan::~PreparedPlan() {
  if (!is_on_device()) return;
  link_->WaitQuietly();
  scope_.ForgetWork(link_->unfinished_run());
}

void PreparedPlan::Allocate() {
  constexpr size_t kListed = 8;
  try {
    AllocateAll();
    // Says what fills the arena: the allocator's own message only knows the number of bytes.
  } catch (const OutOfMemoryError& error) {
    // The list is that of the device.
    if (error.shortage().place != plan_.place) throw;
    throw Error(error.code(),
                StrCat(error.what(), "\n", DescribePeak(ReportMemory(plan_), kListed)));
  }
}

void PreparedPlan::AllocateAll() {
  values_ = std::make_unique<BoundValues>(plan_, &scope_, arena_);
  try {
    written_.clear();
    for (const auto& [name, tensor] : values_->written()) written_.push_back(tensor);
    FindStepCounter();
    shapes_.Bind(values_.get());
    // What an earlier segment left is nobody else's.
    if (first_op_ == 0) {
      copies_.emplace(plan_, DecidingVariables(registry_, *program_), *values_, arena_.get());
    }
    if (makes_graphs_ && !shapes_.varies() && !HasRaggedFeed()) {
      constexpr int64_t kBytes = sizeof(state_.step);
      step_on_device_ = std::make_unique<Buffer>(link_->device().allocator(), kBytes);
      staged_step_.emplace(link_.get(), kBytes);
      state_.device_step = static_cast<const uint64_t*>(step_on_device_->data());
    }
    BindSteps();
    MakeFetches();
    // After BoundValues, which advances the generation if it reserves persistables.
    generation_ = scope_.generation();
    rollback_.emplace(plan_, *values_, is_last_segment_, link_.get());
    if (is_on_device()) FindFaultWords();
    fetched_ = link_->MakeEvent();
    if (step_on_device_ != nullptr) FindGraphs();
    if (environment_.poisons && plan_.place.is_cpu()) poison_.emplace(plan_, *values_);
  } catch (...) {
    // The plan points to what is erased here, so it must be made again.
    if (values_->EraseHidden()) generation_ = kNeverCurrent;
    throw;
  }
}

// Until the host knows that no data were refused, the device runs on, but for the first instruction
// that changes a variable of which there is no copy.
void PreparedPlan::FindFaultWords() {
  faults_.emplace(plan_, link_.get());
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].planned->SetFault(faults_->WordOf(i));
  check_faults_before_ = rollback_->end();
  while (check_faults_before_ < steps_.size() &&
         steps_[check_faults_before_].written_versions.empty()) {
    ++check_faults_before_;
  }
}

// Kernels take LoDs from the host when they put their work into the stream.
bool PreparedPlan::HasRaggedFeed() const {
  return std::ranges::any_of(plan_.feeds,
                             [this](ValueId feed) { return plan_[feed].meta.lod_level > 0; });
}

void PreparedPlan::FindGraphs() {
  std::vector<int64_t> launches;
  for (size_t i = 0; i < steps_.size(); ++i) launches.push_back(CanBeCaptured(i) ? Launches(i) : 0);
  graphs_.emplace(link_.get(), launches,
                  std::vector<size_t>{rollback_->end(), check_faults_before_});
}

int64_t PreparedPlan::Launches(size_t step) const {
  const Instruction& instruction = plan_.instructions[step];
  if (instruction.kind != InstructionKind::kLoop) return 1;
  const Loop& loop = *instruction.loop;
  if (loop.iterations < 0) return 1;
  return std::max<int64_t>(1, MultiplyCounts(loop.iterations, std::ssize(loop.body.instructions)));
}

bool PreparedPlan::CanBeCaptured(size_t step) const {
  const Instruction& instruction = plan_.instructions[step];
  if (instruction.place.is_cpu()) return false;
  if (instruction.loop != nullptr && HostWorksIn(*instruction.loop)) return false;
  // The host decides from run to run whether a form is made anew.
  if (steps_[step].planned->has_derived_forms()) return false;
  const auto is_of_host = [this](ValueId value) {
    return value && (plan_[value].place.is_cpu() || plan_[value].meta.lod_level > 0 ||
                     plan_[value].meta.is_array);
  };
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (instruction.reads_data[i] && is_of_host(instruction.inputs[i])) return false;
  }
  return std::ranges::none_of(instruction.outputs, is_of_host);
}

void PreparedPlan::FindStepCounter() {
  Tensor* counter = scope_.FindMutable(kStepCounterName);
  SKIFF_ENFORCE(counter != nullptr && counter->dtype() == DType::kInt64 && counter->has_data() &&
                    counter->element_count() == 1,
                kFailedPrecondition, "the scope must hold the step counter \"", kStepCounterName,
                "\" as int64 [1]");
  step_counter_ = counter->data<int64_t>();
}

KernelSelection PreparedPlan::Selection(const KernelNames& forced, KernelTuner* tuner,
                                        bool rows_vary) const {
  return {.environment = environment_,
          .forced = forced,
          .tuner = tuner,
          .rows_vary = rows_vary,
          .varies = [this](ValueId value) { return shapes_.Varies(value); }};
}

void PreparedPlan::BindSteps() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const Instruction& instruction = plan_.instructions[i];
    step.planned = std::make_unique<BoundKernel>(
        std::move(step.kernel), instruction.workspace_bytes, plan_, instruction, OpId(instruction),
        values_.get(), &scope_, &state_);
    step.current = step.planned.get();
    const bool reads_feed = std::ranges::any_of(instruction.inputs, [&](ValueId input) {
      return input && plan_[input].storage == Storage::kFeed;
    });
    for (const ValueId output : instruction.outputs) {
      if (!output || plan_[output].storage != Storage::kScope) continue;
      if (plan_[output].meta.is_array) continue;
      step.written_versions.push_back(scope_.Version(plan_[output].name));
    }
    // BindFeeds binds these, each time the feeds' addresses change.
    if (reads_feed) feed_readers_.push_back(i);
    if (!reads_feed) step.planned->Bind();
    if (is_on_device()) FindUsesOfHost(instruction, &step);
    if (shapes_.Varies(instruction) && !step.planned->accepts_fewer_rows())
      fixed_steps_.push_back(i);
  }
}

void PreparedPlan::FindUsesOfHost(const Instruction& instruction, Step* step) const {
  step->uses_host_arena = UsesHostArena(plan_, instruction);
  // The device's own kernels order such reads and writes themselves, if the host reads nothing when
  // it issues them.
  const bool is_of_device = instruction.kind == InstructionKind::kOp && !instruction.place.is_cpu();
  if (is_of_device && std::ranges::none_of(instruction.def->inputs, &SlotDef::on_host)) return;
  for (const ValueId input : instruction.inputs) {
    if (!input || plan_[input].storage != Storage::kScope || !plan_[input].place.is_cpu()) continue;
    step->reads_of_host.push_back(values_->Of(input));
  }
}

// Another plan's needs may have moved the arena since the last run.
void PreparedPlan::FollowArena() {
  if (!values_->FollowArena()) return;
  if (graphs_) graphs_->Clear();
  for (Step& step : steps_) {
    step.planned->FollowArena();
    step.planned->Bind();
    step.for_rows.ForEach([](BoundKernel& kernel) {
      kernel.FollowArena();
      kernel.Bind();
    });
  }
}

void PreparedPlan::MakeFetches() {
  fetches_.resize(plan_.fetches.size());
  fetched_lods_.resize(plan_.fetches.size());
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const PlanValue& planned = plan_[plan_.fetches[i]];
    if (IsShared(planned)) continue;
    const Tensor& value = *values_->Of(plan_.fetches[i]);
    // A feed has no tensor before the first run.
    const Shape& shape = value.has_data() ? value.shape() : planned.meta.shape;
    const DType dtype = value.has_data() ? value.dtype() : planned.meta.dtype;
    Tensor& fetch = fetches_[i];
    if (fetch.has_data() && fetch.shape() == shape) continue;
    const int64_t bytes = StorageBytes(shape, dtype, planned.meta.layout);
    // A copy that the caller has made of a fetch with other rows keeps the values of its run.
    if (fetch.has_data() && fetch.buffer().use_count() == 1 &&
        DifferInRowsAlone(fetch.shape(), shape) && fetch.buffer()->bytes() >= bytes) {
      fetch.SetRows(shape[0]);
    } else {
      // The last run's copy to the memory that goes now may be under way.
      if (fetch.has_data()) link_->Wait();
      fetch = value.place().is_cpu()
                  ? Tensor(shape, dtype, Place::Cpu(), planned.meta.layout)
                  : Tensor(shape, dtype, std::make_shared<Buffer>(link_->host_allocator(), bytes),
                           0, planned.meta.layout);
    }
  }
}

void PreparedPlan::FetchLoD(const Tensor& value, size_t index) {
  Tensor& fetch = fetches_[index];
  if (fetch.lod() == value.lod()) return;
  // A LoD of its own, since the next run changes the plan's. A copy that the caller has made of the
  // fetch keeps that of its run.
  std::shared_ptr<LoD>& lod = fetched_lods_[index];
  fetch.ShareLoD(nullptr);
  if (lod == nullptr || lod.use_count() > 1) {
    const auto& planned = plan_[plan_.fetches[index]].meta.lod;
    lod = std::make_shared<LoD>(RoomForLoD(planned ? planned->offsets : value.lod()));
  }
  *lod = value.lod();
  fetch.ShareLoD(lod);
}

const std::vector<Tensor>& PreparedPlan::fetches() {
  if (is_on_device()) {
    link_->Await(fetched_.get());
    NoteWrites();
  }
  return fetches_;
}

std::vector<Tensor> PreparedPlan::TakeFetches() {
  fetched_lods_.clear();
  return std::exchange(fetches_, {});
}

bool PreparedPlan::BindFeeds(const FeedList& feeds) {
  if (!shapes_.Serves(feeds)) return false;
  // A write to that variable would change the feed before later instructions have read it.
  for (const auto& [feed, fed] : feeds) {
    for (const auto& [name, tensor] : values_->written()) {
      SKIFF_ENFORCE(!ShareBytes(fed, *tensor), kInvalidArgument, "feed \"", feed,
                    "\" shares its memory with \"", name,
                    "\", which the run writes: feed a copy (CopyToCpu)");
    }
  }
  // Until all is done: a kernel may refuse its shapes, and memory may run out.
  is_bound_ = false;
  for (size_t i = 0; i < feeds.size(); ++i) *values_->Of(plan_.feeds[i]) = feeds[i].second;
  if (copies_) copies_->Bind(feeds);
  try {
    FollowArena();
    shapes_.Set(values_.get());
    for (const size_t i : fixed_steps_) ChooseKernel(i);
    for (const size_t i : feed_readers_) steps_[i].current->Bind();
  } catch (...) {
    ReleaseFeeds();
    throw;
  }
  is_bound_ = true;
  return true;
}

void PreparedPlan::ChooseKernel(size_t index) {
  Step& step = steps_[index];
  step.current = step.for_rows.Choose(plan_.instructions[index], *values_,
                                      [&] { return PrepareForRows(index); });
}

std::unique_ptr<BoundKernel> PreparedPlan::PrepareForRows(size_t index) {
  const double start = SteadySeconds();
  // The kernel that this one takes the place of may still be at work.
  link_->Wait();
  const Plan& moment = shapes_.CurrentPlan();
  const Instruction& planned = plan_.instructions[index];
  Instruction instruction = moment.instructions[index];
  KernelNames same;
  const KernelDef* def = steps_[index].planned->def();
  if (def != nullptr) same.emplace(planned.op->type, def->name);
  PreparedKernel kernel = PrepareKernel(Selection(same, nullptr, true), moment, &instruction);
  auto bound =
      std::make_unique<BoundKernel>(std::move(kernel), instruction.workspace_bytes, plan_, planned,
                                    OpId(planned), values_.get(), &scope_, &state_);
  if (faults_) bound->SetFault(faults_->WordOf(index));
  ++statistics_->kernels;
  statistics_->kernel_seconds += SteadySeconds() - start;
  return bound;
}

void PreparedPlan::ReleaseFeeds() {
  is_bound_ = false;
  for (const ValueId feed : plan_.feeds) *values_->Of(feed) = Tensor();
  if (copies_) copies_->Release();
}

void PreparedPlan::RunStep(const Step& step) {
  if (step.uses_host_arena || !step.reads_of_host.empty()) link_->AwaitHost();
  // A kernel may still write them in the background.
  for (const Tensor* read : step.reads_of_host) values_->Await(*read);
  step.current->Run();
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
    ReplacedValues::CheckNotReplaced(scope_, name, "a run that writes a variable");
  }
}

void PreparedPlan::StartRun() {
  SKIFF_ENFORCE(is_bound_, kFailedPrecondition,
                "no feeds are bound: the last ones didn't fit, feed others first");
  if (copies_) copies_->Read();
  if (scope_.has_replaced_values()) CheckReplacedValues();
  scope_.SetWork(link_->unfinished_run());
  FollowArena();
  MakeFetches();
  if (first_op_ == 0) ClearArrays();
  state_.step = static_cast<uint64_t>(*step_counter_);
  start_seconds_ = link_->WorkingSeconds();
  // Before the first kernel: these are the variables that may change before an op refuses its data.
  rollback_->Save();
  if (step_on_device_ != nullptr) {
    staged_step_->Copy(step_on_device_->data(), &state_.step, sizeof(state_.step));
  }
  if (faults_) faults_->Reset();
  // A value that is read before it is written then shows, too, not only one that is read too late.
  if (poison_) poison_->PoisonAll();
}

void PreparedPlan::ClearArrays() {
  if (is_last_segment_) return values_->ClearArrays(link_.get());
  // Those of later segments, too.
  for (size_t i = 0; i < program_->block_count(); ++i) {
    for (const auto& var : program_->block(static_cast<int32_t>(i))->vars()) {
      if (var->kind != VarKind::kLoDTensorArray) continue;
      Tensor* tensor = scope_.FindMutable(var->name);
      if (tensor != nullptr && tensor->array() != nullptr) tensor->array()->Clear();
    }
  }
}

// Must follow the writes: whoever shares the memory may have derived a form while they were under
// way.
void PreparedPlan::NoteWrites() const {
  for (const Tensor* tensor : written_) {
    if (NoteWrite(*tensor)) return;
  }
}

void PreparedPlan::Undo() {
  // Versions aren't put back. They have advanced with the writes that are undone, so forms made
  // since are remade, which is all that a version is for.
  // The run has failed already and throws its own Error.
  link_->WaitQuietly();
  rollback_->Restore();
  link_->WaitQuietly();
  NoteWrites();
  // As in AllocateAll.
  if (values_->EraseHidden()) generation_ = kNeverCurrent;
}

void PreparedPlan::CheckFaults() {
  const std::optional<DataFaults::Found> found = faults_->Find();
  if (found) ThrowFault(*found);
}

void PreparedPlan::ThrowFault(const DataFaults::Found& found) const {
  try {
    steps_[found.instruction].current->kernel()->ThrowFault(found.fault);
  } catch (const Error& error) {
    ThrowIn(error, plan_.instructions[found.instruction]);
  }
}

void PreparedPlan::ThrowEarlierFault() {
  std::optional<DataFaults::Found> found;
  try {
    faults_->Collect();
    found = faults_->Find();
  } catch (const Error&) {
    return;  // the device itself has failed, which the first Error tells
  }
  if (found) ThrowFault(*found);
}

void PreparedPlan::CheckFaultsBefore(size_t step) {
  if (!faults_) return;
  if (step == rollback_->end()) faults_->Collect();
  if (step == check_faults_before_) CheckFaults();
}

template <typename RunSome>
void PreparedPlan::RunSteps(End end, const RunSome& run_some) {
  StartRun();
  try {
    for (size_t i = 0; i < steps_.size();) {
      CheckFaultsBefore(i);
      i = run_some(i);
    }
    CheckFaultsBefore(steps_.size());
    FinishRun(end);
  } catch (...) {
    Undo();
    throw;
  }
}

template <typename Work>
void PreparedPlan::RunLocated(const size_t& step, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    // What the device has refused before may be the reason.
    if (faults_) ThrowEarlierFault();
    ThrowIn(error, plan_.instructions[step]);
  }
}

size_t PreparedPlan::RunGraph(size_t step) {
  if (!graphs_) return step;
  bool is_launch = true;
  size_t at = step;
  size_t next = step;
  // Outside of the capture, in which nothing may wait.
  RunLocated(at, [&] {
    next = graphs_->Run(step, [&](size_t i) {
      is_launch = false;
      at = i;
      RunStep(steps_[i]);
    });
  });
  if (!is_launch) return next;
  for (size_t i = step; i < next; ++i) {
    for (uint64_t* version : steps_[i].written_versions) ++*version;
  }
  return next;
}

void PreparedPlan::Run() { RunOnce(End::kWaits); }

void PreparedPlan::Start() { RunOnce(is_last_segment_ ? End::kMayBeLater : End::kWaits); }

void PreparedPlan::RunOnce(End end) {
  RunSteps(end, [this](size_t i) {
    const size_t next = RunGraph(i);
    if (next > i) return next;
    RunLocated(i, [&] { RunStep(steps_[i]); });
    if (poison_) poison_->PoisonAfter(i);
    return i + 1;
  });
}

std::vector<InstructionTime> PreparedPlan::TimedRun() {
  std::vector<InstructionTime> times;
  std::vector<InstructionTime> of_bodies;
  std::vector<DeviceTime> on_device;
  RunSteps(End::kWaits, [&](size_t i) {
    BoundKernel& kernel = *steps_[i].current;
    double seconds = 0;
    StartBodyTiming(kernel.kernel());
    try {
      RunLocated(i, [&] {
        if (is_on_device() && !RunsOnHost(plan_, plan_.instructions[i])) {
          on_device.push_back(TimeOnDevice(i));
          return;
        }
        // The device's work before it isn't the step's.
        link_->Wait();
        const double start = SteadySeconds();
        RunStep(steps_[i]);
        seconds = SteadySeconds() - start;
      });
    } catch (...) {
      InstructionTime unused;
      StopBodyTiming(kernel.kernel(), &unused, &of_bodies);
      throw;
    }
    if (poison_) poison_->PoisonAfter(i);
    times.push_back(TimeOf(plan_, plan_.instructions[i], kernel.def(), seconds));
    StopBodyTiming(kernel.kernel(), &times.back(), &of_bodies);
    return i + 1;
  });
  for (const DeviceTime& time : on_device) {
    times[time.step].seconds += time.end->SecondsSince(*time.start);
  }
  times.insert(times.end(), std::make_move_iterator(of_bodies.begin()),
               std::make_move_iterator(of_bodies.end()));
  return times;
}

PreparedPlan::DeviceTime PreparedPlan::TimeOnDevice(size_t step) {
  DeviceTime time{
      .step = step, .start = link_->device().MakeEvent(), .end = link_->device().MakeEvent()};
  link_->stream().Record(time.start.get());
  RunStep(steps_[step]);
  link_->stream().Record(time.end.get());
  return time;
}

void PreparedPlan::FinishRun(End end) {
  for (size_t i = 0; i < fetches_.size(); ++i) {
    Tensor& value = *values_->Of(plan_.fetches[i]);
    if (IsShared(plan_[plan_.fetches[i]])) {
      fetches_[i] = value;
      continue;
    }
    values_->Await(value);
    link_->Copy(value, &fetches_[i]);
    FetchLoD(value, i);
  }
  link_->Record(fetched_.get());
  issue_seconds_ = link_->WorkingSeconds() - start_seconds_;
  if (end == End::kWaits) link_->Wait();
  if (end == End::kMayBeLater) link_->NoteUnfinishedRun();
  NoteWrites();
  // Last, since nothing takes it back: once the persistables are visible and the step is counted,
  // the run has happened.
  values_->Reveal();
  if (trains_ && is_last_segment_) ++*step_counter_;
}

FeedList PreparedPlan::TakeCarried() {
  FeedList carried;
  std::vector<Tensor> fetches = TakeFetches();
  for (size_t i = 0; i < fetches.size(); ++i) {
    carried.emplace_back(fetched_names_[i], std::move(fetches[i]));
  }
  return carried;
}

void PreparedPlan::UndoRun() {
  values_->UndoReveal();
  Undo();
}

PlanStatistics PreparedPlan::statistics() {
  PlanStatistics statistics;
  statistics.current_live_bytes = plan_.max_live_bytes;
  if (shapes_.varies()) {
    Plan moment = shapes_.CurrentPlan();
    PlanStorage(&moment);
    statistics.current_live_bytes = moment.max_live_bytes;
  }
  statistics.max_live_bytes = plan_.max_live_bytes;
  statistics.planned_bytes = plan_.planned_bytes;
  statistics.unshared_bytes = plan_.unshared_bytes;
  statistics.host_planned_bytes = plan_.host_planned_bytes;
  statistics.recomputed = plan_.recomputed;
  statistics.graphs = graphs_ ? graphs_->count() : 0;
  statistics.issue_seconds = issue_seconds_;
  for (const Step& step : steps_) {
    statistics.derived_bytes += step.planned->kept_bytes();
    step.for_rows.ForEach(
        [&](const BoundKernel& kernel) { statistics.derived_bytes += kernel.kept_bytes(); });
  }
  statistics.rollback_bytes = rollback_->bytes();
  // From the plan: a variable may have left the scope since.
  // A variable has several values but one storage.
  std::set<std::string_view> seen;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || value.meta.is_array) continue;
    if (!seen.insert(value.name).second) continue;
    statistics.persistable_bytes += StorageBytes(value);
  }
  statistics.instructions = static_cast<int64_t>(steps_.size());
  for (const Instruction& instruction : plan_.instructions) {
    if (instruction.kind != InstructionKind::kCopy) continue;
    ++(IsTransfer(plan_, instruction) ? statistics.transfers : statistics.layout_copies);
  }
  return statistics;
}

}  // namespace skiff
