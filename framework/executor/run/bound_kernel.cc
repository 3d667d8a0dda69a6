#include "framework/executor/run/bound_kernel.h"

#include <utility>

#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"
#include "framework/base/within_memory.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/storage/storage.h"
#include "framework/op/background_kernel.h"

namespace skiff {

BoundKernel::BoundKernel(PreparedKernel kernel, const std::vector<int64_t>& workspace_bytes,
                         const Plan& plan, const Instruction& planned, uint64_t op_id,
                         ValueTensors* values, Scope* scope, const RunState* state)
    : kernel_(std::move(kernel)),
      planned_(planned),
      values_(*values),
      workspace_bytes_(workspace_bytes) {
  const auto* background = dynamic_cast<const BackgroundKernel*>(kernel_.kernel.get());
  for (const ValueId input : planned.inputs) context_.inputs.push_back(values->Of(input));
  for (const ValueId output : planned.outputs) {
    context_.outputs.push_back(values->Of(output));
    if (!output || plan[output].storage != Storage::kScope || background == nullptr) continue;
    // The kernel returns before it has written this variable. Whoever reads it through the scope,
    // or here as a fetch or for a rollback, must wait first.
    values->SetPending(output, background->pending());
  }
  for (size_t i = 0; i < workspace_bytes_.size(); ++i) {
    const bool fits =
        i < planned.workspace_bytes.size() && workspace_bytes_[i] <= planned.workspace_bytes[i];
    own_workspaces_.push_back(
        fits ? nullptr : NewBlock(plan, planned.place, workspace_bytes_[i], MemoryTag::kArena));
  }
  PlaceWorkspaces();
  const bool is_beside = planned.stream == PlanStream::kCommunication;
  const DeviceContext& on_device = is_beside ? state->communication : state->device;
  context_.device_context = planned.place.is_cpu() ? &state->host : &on_device;
  context_.communicator =
      planned.place.is_cpu() ? state->host_communicator : state->device_communicator;
  context_.seed = &state->seed;
  context_.step = &state->step;
  if (!planned.place.is_cpu()) context_.device_step = state->device_step;
  context_.op_id = op_id;
  if (IsCollective(planned) && context_.communicator != nullptr) {
    activity_.emplace(plan, planned, context_.communicator);
  }
  if (plan.has_guards) guard_.emplace(plan, planned, context_.outputs);
  FindPlannedOutputs(plan);
  if (kernel_.derived.empty()) return;
  derived_.emplace(plan, planned, std::exchange(kernel_.derived, {}), scope, &context_);
}

void BoundKernel::PlaceWorkspaces() {
  context_.workspaces.clear();
  for (size_t i = 0; i < workspace_bytes_.size(); ++i) {
    context_.workspaces.push_back(
        own_workspaces_[i] == nullptr
            ? values_.InArena(planned_.place, planned_.workspace_offsets[i])
            : own_workspaces_[i]->data());
  }
}

void BoundKernel::Bind() {
  try {
    WithinMemory([this] { kernel_.kernel->Bind(context_); });
  } catch (const Error& error) {
    ThrowIn(error, planned_);
  }
}

void BoundKernel::FollowArena() {
  PlaceWorkspaces();
  if (derived_) derived_->FollowWorkspaces(&context_);
}

void BoundKernel::FindPlannedOutputs(const Plan& plan) {
  if (planned_.kind != InstructionKind::kOp) return;
  if (!planned_.def->data_dependent_shape && !planned_.def->sets_rows) return;
  for (size_t i = 0; i < planned_.outputs.size(); ++i) {
    const ValueId output = planned_.outputs[i];
    const bool is_planned =
        output && plan[output].storage != Storage::kKernelOwned && !plan[output].meta.is_array;
    if (is_planned) planned_outputs_.push_back({static_cast<int>(i), &plan[output]});
  }
}

void BoundKernel::Run() {
  WithinMemory([this] {
    if (derived_) derived_->Refresh(context_);
    if (guard_) guard_->BeforeRun();
    if (activity_) return activity_->During(*context_.step, [this] { RunKernel(); });
    RunKernel();
  });
  if (guard_) guard_->AfterRun();
}

void BoundKernel::RunKernel() {
  if (planned_outputs_.empty()) return kernel_.kernel->Run(context_);
  for (PlannedOutput& output : planned_outputs_) output.before = context_.output(output.index);
  try {
    kernel_.kernel->Run(context_);
    for (const PlannedOutput& output : planned_outputs_) CheckMade(output);
  } catch (...) {
    // Else the next run would take what the kernel has made for the planned tensor.
    for (PlannedOutput& output : planned_outputs_) {
      context_.output(output.index) = std::exchange(output.before, Tensor());
    }
    throw;
  }
  // Later they would keep memory that the arena has given back.
  for (PlannedOutput& output : planned_outputs_) output.before = Tensor();
}

// What plans the rows of such an output is what a program says of it: its name and role, or the
// elements of an array. Kernels that read it trust the plan.
void BoundKernel::CheckMade(const PlannedOutput& output) {
  Tensor& made = context_.output(output.index);
  const Tensor& before = output.before;
  const Shape& planned = output.value->meta.shape;
  // In the body of a loop there is room for the planned rows, and for fewer.
  const bool fits = planned_.sets_rows ? DifferInRowsAlone(made.shape(), planned) &&
                                             (planned.rank() == 0 || made.shape()[0] <= planned[0])
                                       : made.shape() == before.shape();
  SKIFF_ENFORCE(fits && made.dtype() == before.dtype(), kInvalidArgument, "the op has made \"",
                output.value->name, "\" as ", made.dtype(), " ", made.shape(), ", planned ",
                before.dtype(), " ", planned_.sets_rows ? planned : before.shape());
  if (made.raw_data() == before.raw_data()) return;
  // A tensor of the kernel's own.
  Tensor kept = before;
  CopyTensor(made, &kept);
  kept.ShareLoD(made.shared_lod());
  made = std::move(kept);
}

}  // namespace skiff
