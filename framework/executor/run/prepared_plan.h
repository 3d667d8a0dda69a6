// A plan with everything resolved: kernels, tensors, arena. Running it walks an array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/collective_order.h"
#include "framework/comm/world.h"
#include "framework/executor/api/feed_list.h"
#include "framework/executor/api/instruction_time.h"
#include "framework/executor/api/plan_statistics.h"
#include "framework/executor/device/comm_link.h"
#include "framework/executor/device/data_faults.h"
#include "framework/executor/device/device_graphs.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/device/staged_copy.h"
#include "framework/executor/lowering/segment.h"
#include "framework/executor/rows/run_shapes.h"
#include "framework/executor/run/bound_kernel.h"
#include "framework/executor/run/plan_fetches.h"
#include "framework/executor/run/plan_kernels.h"
#include "framework/executor/run/plan_runner.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/executor/storage/feed_copies.h"
#include "framework/executor/storage/host_access.h"
#include "framework/executor/storage/rollback.h"
#include "framework/executor/storage/shared_arena.h"
#include "framework/op/math_mode.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"
#include "framework/transpiler/api/data_parallel_options.h"

namespace skiff {

class KernelTuner;

class PreparedPlan {
 public:
  struct Inputs {
    const OpRegistry* registry = nullptr;
    std::shared_ptr<const Program> program;  // owns the ops that the plan points to
    Scope* scope = nullptr;
    KernelNames forced_kernels = {};
    KernelTuner* tuner = nullptr;  // used by the constructor only; nullptr: none
    std::shared_ptr<DeviceLink> link = DeviceLink::Host();  // to the place of the plan
    // The communication stream beside the link; nullptr: instructions of that stream run in the
    // main stream.
    std::shared_ptr<CommLink> comm = {};
    std::shared_ptr<CollectiveAgreement> agreement = {};  // of the ranks; nullptr: there is one
    std::shared_ptr<SharedArena> arena;
    std::shared_ptr<PreparationStatistics> statistics;  // counts kernels here
    // For a plan for a capacity: the counts of the run that asks for the plan. The plan's feeds are
    // widened to the capacity of the counts. nullptr: the plan serves runs with exactly the counts
    // of its feeds.
    const CountClasses* counts = nullptr;
    // Whether runs with other rows compute the same bits in a plan for a capacity and in a plan for
    // the exact counts. Must be true with `counts`.
    bool rows_vary = false;
    MathMode math = MathMode::kFull;  // CompileOptions::math
    bool trains = false;              // whether a run advances the step counter
    DataParallelOptions data_parallel = {};
    bool poison_dead_memory = false;  // MemoryOptions::poison_dead_memory
    bool graphs = false;              // CompileOptions::graphs
  };

  // Chooses and prepares a kernel for each instruction and plans the storage. Throws an Error that
  // names the op if no kernel takes the op, and the Errors of RunShapes.
  PreparedPlan(Segment segment, const Inputs& inputs);
  // Waits for the device.
  ~PreparedPlan();
  PreparedPlan(const PreparedPlan&) = delete;
  PreparedPlan& operator=(const PreparedPlan&) = delete;

  // Takes the memory and binds the plan to it. Must be called once, before the functions below.
  // Throws an Error (kResourceExhausted) that lists the live values at the peak if there is no
  // memory.
  void Allocate();

  // Makes runs read these tensors from now on and returns true, if the plan serves them
  // (RunShapes::Serves). Otherwise changes nothing. Throws an Error if a feed shares bytes with a
  // variable that runs write. A bool other than 0 and 1 is an Error of the run.
  bool BindFeeds(const FeedList& feeds);
  // Releases the feeds: BindFeeds must come before the next run.
  void ReleaseFeeds();

  // Runs the plan once, on a device to its end. If an op throws, the scope is as it was before the
  // run, and the Error names the op. The step counter advances after the last segment.
  void Run();
  // The same, but the device may still be at work on return if no other segment follows. The feeds
  // have been read by then; fetches() and Scope wait. If the device itself fails later, the scope
  // isn't restored.
  void Start();
  // Does the same as Run and returns the time of every instruction.
  std::vector<InstructionTime> TimedRun();

  // Waits for the fetches of the last run. Throws Error (kIo) if the device has failed.
  const std::vector<Tensor>& fetches();
  // Gives the fetches of the last run to the caller: the next run makes new tensors. Must come
  // after Run, or after fetches().
  std::vector<Tensor> TakeFetches();

  bool is_last_segment() const { return is_last_segment_; }
  size_t first_op() const { return first_op_; }
  size_t next_op() const { return next_op_; }
  // The arrays at the beginning and at the end of the segment.
  const ArrayMetas& arrays_before() const { return arrays_before_; }
  const ArrayMetas& arrays_after() const { return arrays_after_; }
  // As in Segment.
  const PreparedGradients& gradients_before() const { return gradients_before_; }
  const PreparedGradients& gradients_after() const { return gradients_after_; }
  const ContentsByName& contents_before() const { return contents_before_; }
  const ContentsByName& contents_after() const { return contents_after_; }
  // Gives the fetches to the caller, as the feeds of the next segment.
  FeedList TakeCarried();
  // Restores the scope to its state before the last run, since a later segment has failed.
  void UndoRun();
  const Plan& plan() const { return plan_; }
  PlanStatistics statistics();
  // Returns false once the scope's storage has moved: the plan must be made again.
  bool is_current() const { return scope_.generation() == generation_; }

 private:
  bool is_on_device() const { return link_->has_device(); }
  void AllocateAll();
  void FindStepCounter();
  void BindKernels();
  void FindFaultWords();
  void FollowArena();
  // Adds to the statistics the costs of kernels for other rows.
  void CountPreparations();

  // Whether the device may be at work when a run returns.
  enum class End { kWaits, kMayBeLater };

  // Runs the plan, or the rest of a run after StartRun. Undoes the run if an instruction throws.
  void RunOnce(End end);
  void RunStarted(End end);
  void StartRun();
  void FinishRun(End end);
  void CheckReplacedValues() const;
  // Empties the arrays of the program: before its first segment.
  void ClearArrays();
  // Runs an instruction, or a graph of several instructions. Returns the next instruction. If an
  // instruction throws but the device has refused data before, throws the Error for the data
  // instead.
  size_t RunFrom(size_t instruction);
  // Runs the stretch for a graph that begins with the instruction (DeviceGraphs::Run). Returns the
  // next instruction: `instruction` itself if no stretch begins there.
  size_t RunGraph(size_t instruction);
  // If the instruction is of the communication stream, issues it there and returns true. If not,
  // lets the main stream wait for the other one as the plan says, and returns false.
  bool RunBeside(size_t instruction);
  // Lets the main stream wait for all of the other one: at the end of a run.
  void FinishBeside();
  // Before the instruction is issued: waits must then look after other ranks, if it is collective.
  void NoteRanks(size_t instruction);
  // Waits for the memory that the host needs and runs the kernel.
  void RunKernel(size_t instruction);
  // Counts the run's writes to variables that share memory with another variable (NoteWrite).
  void NoteWrites() const;
  // Restores the scope to its state before the run.
  void Undo();

  // On a device: collects faults after the last check of data, and calls CheckFaults before the
  // first write that Rollback can't undo.
  void CheckFaultsBefore(size_t instruction);
  // Throws the Error for data that an instruction on the device has refused, if one has.
  void CheckFaults();
  // Throws the Error for data that the device has refused in an instruction before the failed one,
  // if there is any.
  void ThrowEarlierFault();
  void ThrowFault(const DataFaults::Found& found) const;

  Plan plan_;
  const size_t first_op_;
  const size_t next_op_;
  const bool is_last_segment_;
  const std::vector<std::string> fetched_names_;
  const ArrayMetas arrays_before_;
  const ArrayMetas arrays_after_;
  const PreparedGradients gradients_before_;
  const PreparedGradients gradients_after_;
  const ContentsByName contents_before_;
  const ContentsByName contents_after_;
  std::shared_ptr<const Program> program_;
  const OpRegistry& registry_;
  Scope& scope_;
  const bool trains_;
  const DataParallelOptions data_parallel_;
  const World world_;  // of all ranks that run the program
  // Outlives everything in its stream: kernels, values and arenas.
  std::shared_ptr<DeviceLink> link_;
  const std::shared_ptr<CommLink> comm_;  // nullptr: the plan has one stream
  const std::shared_ptr<CollectiveAgreement> agreement_;
  const bool has_collectives_;
  std::vector<std::string> unchecked_order_;  // CollectiveOrder, until the ranks agree
  const KernelEnvironment environment_;
  const bool makes_graphs_;
  std::shared_ptr<SharedArena> arena_;
  std::shared_ptr<PreparationStatistics> statistics_;
  std::vector<PreparedKernel> kernels_;  // until Allocate
  RunState state_;
  std::optional<PlanRunner> runner_;  // from then on
  std::unique_ptr<BoundValues> values_;
  std::vector<const Tensor*> written_;  // the variables of values_->written(), for each run
  RunShapes shapes_;
  std::optional<FeedCopies> copies_;  // of a plan whose feeds are the user's
  bool is_bound_ = false;             // to feeds
  std::optional<Rollback> rollback_;
  std::optional<HostAccess> host_access_;
  std::optional<DataFaults> faults_;
  size_t check_faults_before_ = 0;  // the first step that writes a variable without a copy
  std::optional<DeviceGraphs> graphs_;
  std::unique_ptr<Buffer> step_on_device_;  // state_.step, if there may be graphs
  std::optional<StagedCopy> staged_step_;
  double start_seconds_ = 0;  // of the last run, on a clock that stops while the host waits
  double issue_seconds_ = 0;  // PlanStatistics::issue_seconds
  std::optional<PlanFetches> fetches_;
  int64_t* step_counter_ = nullptr;
  uint64_t generation_ = 0;  // of the scope, when the plan was bound
};

}  // namespace skiff
