#include "framework/builder/update_gate.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

using Site = std::source_location;

// The persistable's next value.
void Assign(const Variable& persistable, Op op, const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  op.SetOutput("Out", {persistable.name()});
  call.Append(std::move(op));
}

Variable CountDown(const GradientMerge& merge, const Site& site) {
  const std::string name = DefaultMainProgram().UniqueName("@GRADIENT_MERGE_STEP@");
  return CreatePersistable(name, {1}, DType::kInt64, static_cast<double>(merge.steps), site);
}

size_t FindStepIncrement(const Block& root) {
  const auto is_it = [](const std::unique_ptr<Op>& op) {
    return op->type == "increment" && op->Output("Out").size() == 1 &&
           op->Output("Out")[0] == kStepCounter;
  };
  size_t i = 0;
  while (i < root.ops().size() && !is_it(root.ops()[i])) ++i;
  return i;
}

Variable MergedGradient(const NamedGradient& entry, const Variable& is_first, const Site& site) {
  const Var& parameter = *entry.parameter;
  const Variable sum = CreatePersistable(StrCat(parameter.name, "@GRAD@GradientMerge"),
                                         parameter.dims, parameter.dtype, 0.0, site);
  Op op("gradient_merge");
  op.SetInput("Accumulated", {sum.name()});
  op.SetInput("Grad", {entry.gradient.name()});
  op.SetInput("Reset", {is_first.name()});
  op.SetOutput("AccumulatedOut", {sum.name()});
  LayerCall("minimize", "minimize", site).Append(std::move(op));
  return sum;
}

}  // namespace

MergeRound AppendGradientMerge(const GradientMerge& merge, std::vector<NamedGradient>* gradients,
                               const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  call.Enforce(merge.steps > 0, "gradient_merge.steps = ", merge.steps,
               ", expected a positive number");
  const Block& root = *DefaultMainProgram().root();
  MergeRound round;
  round.begin = root.ops().size();
  // From `steps` down to 1.
  const Variable left = CountDown(merge, site);
  const Variable steps =
      layers::FillConstant({1}, DType::kInt64, static_cast<double>(merge.steps), site);
  const Variable one = layers::FillConstant({1}, DType::kInt64, 1.0, site);
  round.is_first = layers::Equal(left, steps, site);
  round.is_last = layers::Equal(left, one, site);
  Op next("where");
  next.SetInput("Condition", {round.is_last.name()});
  next.SetInput("X", {steps.name()});
  next.SetInput("Y", {layers::ElementwiseSub(left, one, {}, site).name()});
  Assign(left, std::move(next), site);
  round.end = root.ops().size();
  for (NamedGradient& entry : *gradients) {
    entry.gradient = MergedGradient(entry, round.is_first, site);
    if (!merge.mean) continue;
    const auto factor = static_cast<float>(1.0 / static_cast<double>(merge.steps));
    entry.gradient = layers::Scale(entry.gradient, {.scale = factor}, site);
  }
  return round;
}

void AdvanceSchedulesByRound(const MergeRound& round, const Site& site) {
  Block* root = DefaultMainProgram().root();
  const size_t increment = FindStepIncrement(*root);
  if (increment == root->ops().size()) return;
  const size_t made = root->ops().size();
  const Variable counter(root, kStepCounter);
  Op add("sum");
  add.SetInput("X", {counter.name(), layers::Cast(round.is_first, DType::kInt64, site).name()});
  Assign(counter, std::move(add), site);
  // In place of the increment: what tells the round, and the sum.
  std::vector<size_t> order;
  const auto append = [&order](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) order.push_back(i);
  };
  append(0, increment);
  append(round.begin, round.end);
  append(made, root->ops().size());
  append(increment + 1, round.begin);
  append(round.end, made);
  root->ReorderOps(order);
}

Variable AppendNonFiniteCheck(const std::vector<NamedGradient>& gradients, const Variable& skip,
                              const Site& site) {
  const Variable finite = layers::IsFinite(SquaredGlobalNorm(gradients, site), site);
  const Variable broken = layers::LogicalNot(finite, site);
  const Variable counted =
      skip.defined() ? layers::LogicalAnd(broken, layers::LogicalNot(skip, site), site) : broken;
  const Variable count = CreatePersistable(kSkippedUpdates, {1}, DType::kInt64, 0.0, site);
  Op add("sum");
  add.SetInput("X", {count.name(), layers::Cast(counted, DType::kInt64, site).name()});
  Assign(count, std::move(add), site);
  return broken;
}

}  // namespace skiff
