// Which ops of a plan run on channel-blocked tensors.
#pragma once

#include <optional>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

// The metas of an op's arguments when it runs blocked. Arguments with too few channels for a block,
// and arguments that the op takes plain only, are plain.
struct BlockedForm {
  std::vector<TensorMeta> inputs;
  std::vector<TensorMeta> outputs;
};

// By instruction; no form for an instruction that can't run blocked or has nothing to block.
using BlockedForms = std::vector<std::optional<BlockedForm>>;

// Returns the form that each instruction of the plan may take. A form has a kernel.
BlockedForms FindBlockedForms(const PassContext& context, const Plan& plan, Layout blocked);

// Returns by instruction whether it runs blocked. An op that prefers blocked tensors runs blocked
// wherever it can; an op without a preference does if an input comes blocked.
std::vector<bool> ChooseBlocked(const Plan& plan, const BlockedForms& forms);

}  // namespace skiff
