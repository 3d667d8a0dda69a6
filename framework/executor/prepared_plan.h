// A plan with everything resolved: kernels, tensors, arena. Running it walks an array.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

class ConstantInputs;

class PreparedPlan {
 public:
  struct Inputs {
    const OpRegistry* registry = nullptr;
    std::shared_ptr<const Program> program;  // owns the ops that the plan points to
    Scope* scope = nullptr;
    KernelTuner* tuner = nullptr;  // used by the constructor only; nullptr: none
    bool trains = false;           // whether a run advances the step counter
  };

  // Chooses and prepares a kernel per instruction and plans the storage. Error if no kernel fits,
  // naming the op.
  PreparedPlan(Plan plan, Inputs inputs);
  ~PreparedPlan();
  // Takes the memory and binds the plan to it; before, there is nothing to run. Error
  // (kResourceExhausted) that lists what is live at the peak, if there is no memory.
  void Allocate();
  PreparedPlan(const PreparedPlan&) = delete;
  PreparedPlan& operator=(const PreparedPlan&) = delete;

  // The tensors that runs read from now on, in the order of plan().feeds; shapes and dtypes are
  // those of the plan. Error for one that shares bytes with a variable that the runs write.
  void BindFeeds(const FeedList& feeds);
  // Lets go of what was bound: the plan needs other feeds before it runs again.
  void ReleaseFeeds();
  void Run();
  std::vector<InstructionTime> TimedRun();
  const std::vector<Tensor>& fetches() const { return fetches_; }
  // The fetches of the last run, which are the caller's from now on: the next run makes others.
  std::vector<Tensor> TakeFetches() { return std::exchange(fetches_, {}); }
  const Plan& plan() const { return plan_; }
  PlanStatistics statistics() const;
  // False once the scope's storage has moved: the plan must be made again.
  bool is_current() const { return inputs_.scope->generation() == generation_; }

 private:
  // A form derived from inputs. If they change in every run it is a workspace of its instruction;
  // else it has a storage of its own.
  struct Derived {
    std::vector<const uint64_t*> source_versions;  // of a form that is kept
    uint64_t version = 0;  // sum of theirs when it was filled: versions only grow
    bool filled = false;
    std::function<void(const KernelContext&, void*)> refresh;
    std::unique_ptr<Buffer> storage;  // nullptr: a workspace
    void* data = nullptr;
  };
  struct DerivedRequest {
    DerivedForm form;
    int workspace = -1;  // index; -1: it is kept
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    KernelContext context;
    std::vector<size_t> derived;              // indices into derived_ to bring up to date before
    std::vector<uint64_t*> written_versions;  // of the scope variables that it writes
    const KernelDef* kernel_def = nullptr;    // nullptr: no op, or several
  };

  // A persistable that no run has filled yet, and the storage that was reserved for it.
  struct Created {
    std::string name;
    std::shared_ptr<Buffer> buffer;
  };

  // A part of the arena that holds nothing any more.
  struct DeadMemory {
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  // The value that a persistable had before the run.
  struct Rollback {
    Tensor* live = nullptr;
    Tensor saved;
  };

  void PrepareKernels();
  const KernelDef& ChooseKernel(const Instruction& instruction, const OpContext& context,
                                const ConstantInputs& constant) const;
  void AllocateAll();
  void CreatePersistables();
  void EraseCreated();
  void MakeFetches();
  void Bind();
  // Waits for a step that may still be writing it.
  void Await(const Tensor& tensor) const;
  // Of those that read feeds it is BindFeeds that does it.
  void BindKernels();
  void PlanRollback();
  // What instructions leave behind is filled with NaN if the options ask for it.
  void PlanPoison();
  void Poison(DeadMemory dead);
  static void RequestDerived(const std::vector<DerivedForm>& forms, const ConstantInputs& constant,
                             Instruction* instruction, std::vector<DerivedRequest>* requests);
  void BindDerived(const Instruction& instruction, DerivedRequest& request, Step* step);
  void BindStep(const Instruction& instruction, Step* step);
  // Calls run_one(i) for each instruction, segment by segment; undoes the run if one throws.
  template <typename RunOne>
  void RunSteps(const RunOne& run_one);
  void RunStep(Step& step);
  void CheckReplacedValues() const;
  void StartRun();
  void FinishRun();
  // Puts the scope back to what it was before the run that failed.
  void Undo();
  [[noreturn]] void ThrowIn(const Error& error, size_t index) const;

  Plan plan_;
  Inputs inputs_;
  std::vector<Step> steps_;
  std::vector<size_t> feed_readers_;                           // steps
  std::vector<std::vector<DerivedRequest>> derived_requests_;  // by instruction
  std::vector<Derived> derived_;
  std::shared_ptr<Buffer> arena_;
  std::vector<Tensor> tensors_;  // by value; those of the scope are the scope's own
  std::vector<Tensor*> value_tensors_;
  std::vector<Tensor> fetches_;
  std::map<std::string, const Tensor*> written_;  // variables of the scope that runs write
  std::vector<Rollback> rollbacks_;
  std::vector<std::vector<DeadMemory>> poisoned_;  // behind each instruction; empty: nothing is
  std::vector<Created> created_;
  std::map<const Tensor*, PendingWrites*> pending_;  // of outputs written in the background
  DeviceContext device_;
  uint64_t seed_ = 0;
  int64_t* step_counter_ = nullptr;
  uint64_t step_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace skiff
