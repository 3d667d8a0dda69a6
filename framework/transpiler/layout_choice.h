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
  // What the ops that the rule blocks take, with the copies between layouts, by their times;
  // without ops that have none, since they can't be tried out or their kernel is forced.
  double seconds = 0;
  double seconds_by_rule = 0;
};

// Of the ops that the rule blocks, those stay so for which the times of all ops (the faster of each
// one's kernels) and of the copies between layouts add up to the least, as the plan's tuner has
// measured them. Below 5 % timings repeat too badly for an op to leave the rule. What doesn't leave
// it either: ops whose kernel is forced, and ops with a preference that can't be timed. An op that
// reads an intermediate output of another one has the layout of that one. Where the tuner has fixed
// choices and lacks a time, all stays as the rule has it.
//
// What comes later isn't counted: element-wise ops are timed one by one, before they are fused.
TimedLayouts LayoutsByTime(const OpRegistry& registry, const Plan& plan, const BlockedForms& forms,
                           const std::vector<bool>& by_rule, Layout blocked);

}  // namespace skiff
