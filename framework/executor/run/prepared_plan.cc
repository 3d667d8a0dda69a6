// The constructor chooses kernels and plans the storage, which takes no memory worth mentioning;
// that is enough to compare plans. Allocate takes the memory and resolves every argument to a
// pointer. A run then saves what a failure must restore, runs the instructions one by one and
// copies the fetches.
#include "framework/executor/run/prepared_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "framework/analysis/argument_places.h"
#include "framework/analysis/dependencies.h"
#include "framework/analysis/memory_report.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/executor/run/graph_launches.h"
#include "framework/executor/run/loop_kernel.h"
#include "framework/executor/storage/scope_overlap.h"
#include "framework/executor/storage/storage.h"
#include "framework/tensor/replaced_values.h"
#include "framework/tensor/shared_writes.h"
#include "framework/tensor/tensor_array.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

// A generation that no scope reaches.
constexpr uint64_t kNeverCurrent = std::numeric_limits<uint64_t>::max();

World WorldOf(const DataParallelOptions& options) {
  return options.communicator == nullptr ? World() : options.communicator->world();
}

// A pass that breaks this would have two streams use the same memory at once.
void CheckStreams(const Plan& plan) {
  if (!HasCommunicationStream(plan)) return;
  const std::vector<std::string> mistakes = StreamMistakes(plan);
  SKIFF_ENFORCE(mistakes.empty(), kFailedPrecondition, Join(mistakes, "\n"));
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
      data_parallel_(inputs.data_parallel),
      world_(WorldOf(data_parallel_)),
      link_(inputs.link),
      comm_(HasCommunicationStream(plan_) ? inputs.comm : nullptr),
      agreement_(inputs.agreement),
      has_collectives_(std::ranges::any_of(plan_.instructions, IsCollective)),
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
      state_{.device = link_->context(),
             .communication = comm_ == nullptr ? link_->context() : comm_->context(),
             .seed = inputs.program->seed,
             .host_communicator = data_parallel_.communicator.get(),
             .device_communicator = data_parallel_.device_communicator.get()},
      shapes_(*inputs.registry, plan_, inputs.counts) {
  SKIFF_ENFORCE(link_->place() == plan_.place, kInvalidArgument, "a plan on ", plan_.place,
                " and a link to ", link_->place(), ": expected a link to the plan's place");
  // A pass that breaks this would have a kernel touch memory that it can't.
  if (is_on_device()) CheckPlaces(plan_);
  CheckStreams(plan_);
  if (agreement_ != nullptr) unchecked_order_ = CollectiveOrder(plan_);
  kernels_ = PrepareKernels({.environment = environment_,
                             .forced = inputs.forced_kernels,
                             .tuner = inputs.tuner,
                             .rows_vary = inputs.rows_vary,
                             .varies = [this](ValueId value) { return shapes_.Varies(value); }},
                            &plan_);
  statistics_->kernels += static_cast<int64_t>(kernels_.size());
  // After the kernels, since only prepared kernels know their workspaces.
  PlanStorage(&plan_);
}

PreparedPlan::~PreparedPlan() {
  if (!is_on_device()) return;
  link_->WaitQuietly();
  // Nobody knows how long the communicator lives.
  if (has_collectives_) link_->NoteRanks(nullptr);
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
    if (makes_graphs_ && !shapes_.varies() && !HasRaggedFeed(plan_)) {
      constexpr int64_t kBytes = sizeof(state_.step);
      step_on_device_ = std::make_unique<Buffer>(link_->device().allocator(), kBytes);
      staged_step_.emplace(link_.get(), kBytes);
      state_.device_step = static_cast<const uint64_t*>(step_on_device_->data());
    }
    BindKernels();
    fetches_.emplace(plan_, *values_, link_.get());
    fetches_->Make();
    // After BoundValues, which advances the generation if it reserves persistables.
    generation_ = scope_.generation();
    rollback_.emplace(plan_, *values_, is_last_segment_, link_.get());
    FindFaultWords();
    if (step_on_device_ != nullptr) {
      std::vector<size_t> cuts = WaitsOf(plan_);
      cuts.insert(cuts.end(), {rollback_->end(), check_faults_before_});
      graphs_.emplace(link_.get(), GraphLaunches(plan_, *runner_), cuts);
    }
  } catch (...) {
    // The plan points to what is erased here, so it must be made again.
    if (values_->EraseHidden()) generation_ = kNeverCurrent;
    throw;
  }
}

// Until the host knows that no data were refused, the device runs on, up to the first instruction
// that writes a variable without a copy.
void PreparedPlan::FindFaultWords() {
  faults_.emplace(plan_, link_.get());
  for (size_t i = 0; i < runner_->size(); ++i) runner_->SetFault(i, faults_->WordOf(i));
  check_faults_before_ = rollback_->end();
  while (check_faults_before_ < runner_->size() && !runner_->WritesVariable(check_faults_before_)) {
    ++check_faults_before_;
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

void PreparedPlan::BindKernels() {
  runner_.emplace(
      PlanRunner::Inputs{
          .plan = plan_,
          .environment = environment_,
          .values = values_.get(),
          .state = &state_,
          .varies = [this](const Instruction& i) { return shapes_.Varies(i); },
          .current_plan = [this](size_t) -> const Plan& { return shapes_.CurrentPlan(); }},
      std::move(kernels_));
  // BindFeeds binds the others, each time the feeds' addresses change.
  runner_->BindAllButFeedReaders();
  host_access_.emplace(plan_, *values_, link_.get());
}

// Another plan's needs may have moved the arena since the last run.
void PreparedPlan::FollowArena() {
  if (!values_->FollowArena()) return;
  if (graphs_) graphs_->Clear();
  try {
    runner_->FollowArena();
    runner_->Bind();
  } catch (...) {
    // The other kernels still point to where the arena was.
    generation_ = kNeverCurrent;
    is_bound_ = false;
    throw;
  }
}

const std::vector<Tensor>& PreparedPlan::fetches() {
  if (is_on_device()) {
    fetches_->Await();
    NoteWrites();
  }
  return fetches_->tensors();
}

std::vector<Tensor> PreparedPlan::TakeFetches() { return fetches_->Take(); }

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
    runner_->ChooseKernels();
    runner_->BindFeedReaders();
  } catch (...) {
    CountPreparations();
    ReleaseFeeds();
    throw;
  }
  CountPreparations();
  is_bound_ = true;
  return true;
}

void PreparedPlan::CountPreparations() {
  const PlanRunner::Preparations preparations = runner_->TakePreparations();
  statistics_->kernels += preparations.kernels;
  statistics_->kernel_seconds += preparations.seconds;
}

void PreparedPlan::ReleaseFeeds() {
  is_bound_ = false;
  for (const ValueId feed : plan_.feeds) *values_->Of(feed) = Tensor();
  if (copies_) copies_->Release();
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
  if (!unchecked_order_.empty()) {
    agreement_->Check(unchecked_order_);
    unchecked_order_.clear();
  }
  scope_.SetWork(link_->unfinished_run());
  FollowArena();
  fetches_->Make();
  if (first_op_ == 0) ClearArrays();
  // The counter counts the runs of all ranks, as if they ran one after the other.
  state_.step = static_cast<uint64_t>(*step_counter_ + (trains_ ? world_.rank : 0));
  start_seconds_ = link_->WorkingSeconds();
  // Before the first kernel: these are the variables that may change before an op refuses its data.
  rollback_->Save();
  if (step_on_device_ != nullptr) {
    staged_step_->Copy(step_on_device_->data(), &state_.step, sizeof(state_.step));
  }
  faults_->Reset();
  // A value that is read before it is written then shows, too, not only one that is read too late.
  runner_->Poison();
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
  if (comm_ != nullptr) comm_->WaitQuietly();
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
    runner_->kernel(found.instruction).kernel()->ThrowFault(found.fault);
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

void PreparedPlan::CheckFaultsBefore(size_t instruction) {
  if (faults_->is_empty()) return;
  if (instruction == rollback_->end()) faults_->Collect();
  if (instruction == check_faults_before_) CheckFaults();
}

bool PreparedPlan::RunBeside(size_t instruction) {
  const Instruction& planned = plan_.instructions[instruction];
  if (planned.stream == PlanStream::kMain) {
    const auto count = static_cast<size_t>(planned.waits_for + 1);
    if (count > 0) runner_->TimeWait(instruction, [&] { comm_->Await(count); });
    return false;
  }
  host_access_->AwaitBefore(instruction);
  NoteRanks(instruction);
  const bool follows_main =
      instruction > 0 && plan_.instructions[instruction - 1].stream == PlanStream::kMain;
  comm_->Issue([this, instruction] { runner_->RunBeside(instruction); }, follows_main);
  runner_->NoteWrites(instruction);
  return true;
}

void PreparedPlan::FinishBeside() {
  if (comm_ != nullptr) runner_->TimeWait(runner_->size() - 1, [&] { comm_->Finish(); });
}

void PreparedPlan::NoteRanks(size_t instruction) {
  if (has_collectives_ && IsCollective(plan_.instructions[instruction])) {
    link_->NoteRanks(state_.device_communicator);
  }
}

void PreparedPlan::RunKernel(size_t instruction) {
  host_access_->AwaitBefore(instruction);
  NoteRanks(instruction);
  runner_->kernel(instruction).Run();
}

size_t PreparedPlan::RunGraph(size_t instruction) {
  bool is_launch = true;
  size_t at = instruction;
  size_t next = instruction;
  // Outside of the capture, in which nothing may wait.
  runner_->Locate(at, [&] {
    next = graphs_->Run(instruction, [&](size_t i) {
      is_launch = false;
      at = i;
      RunKernel(i);
      runner_->NoteWrites(i);
    });
  });
  if (!is_launch) return next;
  for (size_t i = instruction; i < next; ++i) runner_->NoteWrites(i);
  return next;
}

size_t PreparedPlan::RunFrom(size_t instruction) {
  try {
    // Outside of graphs, and of the place that an Error is given: it may be of an earlier
    // instruction.
    if (comm_ != nullptr && RunBeside(instruction)) return instruction + 1;
    if (graphs_ && !runner_->is_timed()) {
      const size_t next = RunGraph(instruction);
      if (next > instruction) return next;
    }
    runner_->Run(instruction, [&] { RunKernel(instruction); });
    return instruction + 1;
  } catch (const Error&) {
    // What the device has refused before may be the reason.
    ThrowEarlierFault();
    throw;
  }
}

void PreparedPlan::RunStarted(End end) {
  try {
    for (size_t i = 0; i < runner_->size();) {
      CheckFaultsBefore(i);
      i = RunFrom(i);
    }
    CheckFaultsBefore(runner_->size());
    FinishBeside();
    FinishRun(end);
  } catch (...) {
    Undo();
    throw;
  }
}

void PreparedPlan::RunOnce(End end) {
  StartRun();
  RunStarted(end);
}

void PreparedPlan::Run() { RunOnce(End::kWaits); }

void PreparedPlan::Start() { RunOnce(is_last_segment_ ? End::kMayBeLater : End::kWaits); }

std::vector<InstructionTime> PreparedPlan::TimedRun() {
  StartRun();
  runner_->StartTiming(PlanRunner::Clock::kEvents);
  try {
    RunStarted(End::kWaits);
  } catch (...) {
    runner_->AbandonTiming();
    throw;
  }
  return runner_->StopTiming();
}

void PreparedPlan::FinishRun(End end) {
  fetches_->Copy();
  issue_seconds_ = link_->WorkingSeconds() - start_seconds_;
  end == End::kWaits ? link_->Wait() : link_->NoteUnfinishedRun();
  NoteWrites();
  // Last, since nothing takes it back: once the persistables are visible and the step is counted,
  // the run has happened.
  values_->Reveal();
  if (trains_ && is_last_segment_) *step_counter_ += world_.size;
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
    Plan current = shapes_.CurrentPlan();
    PlanStorage(&current);
    statistics.current_live_bytes = current.max_live_bytes;
  }
  statistics.max_live_bytes = plan_.max_live_bytes;
  statistics.planned_bytes = plan_.planned_bytes;
  statistics.unshared_bytes = plan_.unshared_bytes;
  statistics.host_planned_bytes = plan_.host_planned_bytes;
  statistics.recomputed = plan_.recomputed;
  statistics.graphs = graphs_ ? graphs_->count() : 0;
  statistics.issue_seconds = issue_seconds_;
  statistics.derived_bytes = runner_->kept_bytes();
  statistics.rollback_bytes = rollback_->bytes();
  // From the plan: a variable may have left the scope since.
  // A variable has several values but one storage.
  std::set<std::string_view> seen;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || value.meta.is_array) continue;
    if (!seen.insert(value.name).second) continue;
    statistics.persistable_bytes += StorageBytes(value);
  }
  statistics.instructions = static_cast<int64_t>(runner_->size());
  for (const Instruction& instruction : plan_.instructions) {
    if (instruction.kind != InstructionKind::kCopy) continue;
    ++(IsTransfer(plan_, instruction) ? statistics.transfers : statistics.layout_copies);
  }
  return statistics;
}

}  // namespace skiff
