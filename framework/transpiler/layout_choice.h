// Which ops of a plan run on channel-blocked tensors.
#pragma once

#include <optional>
#include <vector>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// An op on blocked tensors: what its arguments are then. Those that don't fill a block, and those
// that the op takes plain only, are plain.
struct BlockedForm {
  std::vector<TensorMeta> inputs;
  std::vector<TensorMeta> outputs;
};

// By instruction; nothing for one that can't run blocked, or has nothing to block.
using BlockedForms = std::vector<std::optional<BlockedForm>>;
BlockedForms FindBlockedForms(const OpRegistry& registry, const Plan& plan, Layout blocked);

// By instruction, whether it runs blocked. By rule, an op that has a preference does wherever it
// can, and one that has none if an input comes blocked.
std::vector<bool> LayoutsByRule(const Plan& plan, const BlockedForms& forms);

struct TimedLayouts {
  std::vector<bool> is_blocked;  // by instruction
  // What ops with a choice and copies between layouts take together, by their times.
  double seconds = 0;
  double seconds_by_rule = 0;
};

// The choice for which the times of all ops (the faster of each kernels' candidates) and of the
// copies between layouts add up to the least, as the plan's tuner has measured them. An op runs
// plain only if that pays by more than 5 %: below, timings repeat too badly. Ops whose kernel is
// forced stay as the rule has them.
TimedLayouts LayoutsByTime(const OpRegistry& registry, const Plan& plan, const BlockedForms& forms,
                           Layout blocked);

}  // namespace skiff
