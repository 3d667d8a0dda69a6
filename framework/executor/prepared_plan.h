// A plan with everything resolved: kernels, tensors, arena. Running it walks an array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/executor/arena_poison.h"
#include "framework/executor/bound_values.h"
#include "framework/executor/derived_forms.h"
#include "framework/executor/executor.h"
#include "framework/executor/plan_kernels.h"
#include "framework/executor/plan_lods.h"
#include "framework/executor/rollback.h"
#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

class PreparedPlan {
 public:
  struct Inputs {
    const OpRegistry* registry = nullptr;
    std::shared_ptr<const Program> program;  // owns the ops that the plan points to
    Scope* scope = nullptr;
    KernelNames forced_kernels = {};
    KernelTuner* tuner = nullptr;     // used by the constructor only; nullptr: none
    bool trains = false;              // whether a run advances the step counter
    bool poison_dead_memory = false;  // MemoryOptions::poison_dead_memory
  };

  // Chooses and prepares a kernel for each instruction and plans the storage. Throws an Error that
  // names the op if no kernel takes it.
  PreparedPlan(Plan plan, const Inputs& inputs);
  PreparedPlan(const PreparedPlan&) = delete;
  PreparedPlan& operator=(const PreparedPlan&) = delete;

  // Takes the memory and binds the plan to it. Must be called once, before all that follows. Throws
  // an Error (kResourceExhausted) that lists what is live at the peak if there is no memory.
  void Allocate();

  // Returns whether the plan's shapes are right for feeds of its signature, whose LoDs may differ
  // from those that it was made for.
  bool Fits(const FeedList& feeds) const { return lods_.Fit(feeds); }
  // Makes runs read these tensors from now on. They are in the order of plan().feeds and have the
  // plan's shapes and dtypes, and fit. Throws an Error if one shares bytes with a variable that
  // runs write.
  void BindFeeds(const FeedList& feeds);
  // Releases the feeds: the plan needs others before it runs again.
  void ReleaseFeeds();

  // Runs the plan once. If an op throws, the scope is as it was before the run, and the Error names
  // the op.
  void Run();
  // Does the same and returns the time of every instruction.
  std::vector<InstructionTime> TimedRun();

  const std::vector<Tensor>& fetches() const { return fetches_; }
  // Gives the fetches of the last run to the caller: the next run makes others.
  std::vector<Tensor> TakeFetches() { return std::exchange(fetches_, {}); }
  const Plan& plan() const { return plan_; }
  PlanStatistics statistics() const;
  // Returns false once the scope's storage has moved: the plan must be made again.
  bool is_current() const { return scope_.generation() == generation_; }

 private:
  // An instruction, ready to run.
  struct Step {
    PreparedKernel kernel;
    KernelContext context;
    std::optional<DerivedForms> derived;      // if the kernel has any
    std::vector<uint64_t*> written_versions;  // of the scope variables that it writes
  };
  // The data of a run that the kernels' contexts point to.
  struct RunState {
    DeviceContext device;
    uint64_t seed = 0;
    uint64_t step = 0;
  };

  void AllocateAll();
  void BindSteps();
  void BindStep(const Instruction& instruction, Step* step);
  void BindKernels();
  void FindStepCounter();
  void MakeFetches();
  void CheckReplacedValues() const;

  // Calls run_one(i) for each instruction i. Undoes the run if one throws.
  template <typename RunOne>
  void RunSteps(const RunOne& run_one);
  void RunStep(Step& step);
  void StartRun();
  void FinishRun();
  // Puts the scope back to what it was before the run.
  void Undo();

  Plan plan_;
  std::shared_ptr<const Program> program_;
  Scope& scope_;
  const bool trains_;
  const bool poisons_;
  std::vector<Step> steps_;           // by instruction
  std::vector<size_t> feed_readers_;  // steps
  std::unique_ptr<BoundValues> values_;
  PlanLoDs lods_;
  std::optional<Rollback> rollback_;
  std::optional<ArenaPoison> poison_;
  std::vector<Tensor> fetches_;
  RunState state_;
  int64_t* step_counter_ = nullptr;
  uint64_t generation_ = 0;  // of the scope, when the plan was bound
};

}  // namespace skiff
