// A prepared kernel of an instruction with its arguments, workspaces and derived forms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/executor/run/collective_activity.h"
#include "framework/executor/run/derived_forms.h"
#include "framework/executor/run/plan_kernels.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/executor/storage/output_guard.h"
#include "framework/op/kernel.h"
#include "framework/plan/plan.h"
#include "framework/tensor/device_context.h"
#include "framework/tensor/scope.h"

namespace skiff {

// The state of a run, for all kernels.
struct RunState {
  DeviceContext device;  // of the program's place
  // Of kernels on the device in the communication stream.
  DeviceContext communication;
  DeviceContext host;
  uint64_t seed = 0;
  uint64_t step = 0;
  const uint64_t* device_step = nullptr;  // RandomKey::device_step
  // KernelContext::communicator of kernels on the CPU and on the device.
  Communicator* host_communicator = nullptr;
  Communicator* device_communicator = nullptr;
};

class BoundKernel {
 public:
  // `workspace_bytes`: as the kernel requested. A workspace lies in the arena, at its place in
  // `planned`, if there is enough room, else in memory of its own. Throws an Error
  // (kResourceExhausted) if there is no memory. All arguments except the kernel must outlive the
  // object.
  BoundKernel(PreparedKernel kernel, const std::vector<int64_t>& workspace_bytes, const Plan& plan,
              const Instruction& planned, uint64_t op_id, ValueTensors* values, Scope* scope,
              const RunState* state);

  const KernelDef* def() const { return kernel_.def; }
  Kernel* kernel() const { return kernel_.kernel.get(); }
  bool accepts_fewer_rows() const { return kernel_.kernel->AcceptsFewerRows(); }
  bool has_derived_forms() const { return derived_.has_value(); }
  int64_t kept_bytes() const { return derived_ ? derived_->kept_bytes() : 0; }

  // Tells the kernel where to note data that it refuses (KernelContext::fault).
  void SetFault(uint64_t* word) { context_.fault = word; }
  // Must follow when the address of an argument or of the arena has changed. Throws an Error
  // (kResourceExhausted) that names the op if the host has no memory for the kernel's tables.
  void Bind();
  void FollowArena();
  // Must come before the first iteration of each run of a loop, for a kernel of its body: the
  // loop's forms lie at `memory` (DerivedForms::PlaceInLoop).
  void StartLoop(char* memory) {
    if (derived_) derived_->PlaceInLoop(memory, &context_);
  }

  // Throws the Errors of the kernel, and an Error (kInvalidArgument) if an output has other dims or
  // another dtype than planned.
  void Run();

 private:
  // An output that has a place in the plan, though its rows depend on data.
  struct PlannedOutput {
    int index = 0;
    const PlanValue* value = nullptr;
    Tensor before = {};  // while the kernel runs: the planned tensor
  };

  void PlaceWorkspaces();
  void FindPlannedOutputs(const Plan& plan);
  void RunKernel();
  void CheckMade(const PlannedOutput& output);

  PreparedKernel kernel_;
  const Instruction& planned_;
  ValueTensors& values_;
  std::vector<int64_t> workspace_bytes_;
  std::vector<std::shared_ptr<Buffer>> own_workspaces_;  // nullptr: in the arena
  KernelContext context_;
  std::vector<PlannedOutput> planned_outputs_;
  std::optional<DerivedForms> derived_;         // if the kernel has any
  std::optional<OutputGuard> guard_;            // if the plan has guards
  std::optional<CollectiveActivity> activity_;  // if the op is collective and there are ranks
};

}  // namespace skiff
