#include "framework/executor/bound_kernel.h"

#include <utility>

#include "framework/executor/storage.h"
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
  context_.device_context = planned.place.is_cpu() ? &state->host : &state->device;
  context_.seed = &state->seed;
  context_.step = &state->step;
  if (!planned.place.is_cpu()) context_.device_step = state->device_step;
  context_.op_id = op_id;
  if (plan.has_guards) guard_.emplace(plan, planned, context_.outputs);
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

void BoundKernel::FollowArena() {
  PlaceWorkspaces();
  if (derived_) derived_->FollowWorkspaces(&context_);
}

void BoundKernel::Run() {
  if (derived_) derived_->Refresh(context_);
  if (guard_) guard_->BeforeRun();
  kernel_.kernel->Run(context_);
  if (guard_) guard_->AfterRun();
}

}  // namespace skiff
