#include "framework/builder/update_condition.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/step_counter.h"
#include "framework/builder/tensor_layers.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

using Site = std::source_location;

// Appends the op with the persistable as its output.
void Assign(const Variable& persistable, Op op, const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  op.SetOutput("Out", {persistable.name()});
  call.Append(std::move(op));
}

// An int64 attribute of the op that advances the step counter: the runs of a round. Without it, the
// counter advances in each run.
constexpr const char* kRunsPerStepAttr = "runs_per_step";

// Returns the variables that are computed from the step counter, which op `advance` advances,
// parameters excepted.
std::set<std::string> ScheduledVariables(const Block& root, size_t advance) {
  std::set<std::string> scheduled = {root.ops()[advance]->Output("Out")[0]};
  const auto is_scheduled = [&](const std::string& name) { return scheduled.contains(name); };
  for (const auto& op : root.ops()) {
    const bool is_update = !op->Input("LearningRate").empty();
    if (is_update || !std::ranges::any_of(op->InputNames(), is_scheduled)) continue;
    for (const std::string& name : op->OutputNames()) scheduled.insert(name);
  }
  return scheduled;
}

// Returns an op of that type, which adds the gradient to the sum.
Op MergeOp(const char* type, const GradientMerge& merge, const MergeRound& round,
           const Variable& sum, const Variable& gradient) {
  Op op(type);
  op.SetInput("Accumulated", {sum.name()}).SetOutput("AccumulatedOut", {sum.name()});
  op.SetInput("Grad", {gradient.name()}).SetInput("Count", {round.count.name()});
  op.SetAttr("steps", merge.steps).SetAttr("mean", merge.mean);
  return op;
}

Variable MergedGradient(const GradientMerge& merge, const MergeRound& round,
                        const NamedGradient& entry, const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  const Var& parameter = *entry.parameter;
  const std::string name = OwnPersistableName(parameter.name + kMergedGradient);
  const Variable sum = CreatePersistable(name, parameter.dims, entry.weights->dtype, 0.0, site);
  if (entry.gradient.var().kind != VarKind::kSelectedRows) {
    call.Append(MergeOp("gradient_merge", merge, round, sum, entry.gradient));
    return sum;
  }
  // The sum of a sparse gradient is dense, with a mark for each row. So the merged gradient has
  // just the rows that some batch of the round looked up, and updates that change only rows of the
  // gradient stay sparse.
  const Variable touched =
      CreatePersistable(name + "Rows", {parameter.dims[0]}, DType::kBool, 0.0, site);
  // Unlike gradient_merge, it takes no two-byte gradient for a float32 sum.
  const Variable rows = IsHalf(entry.gradient.dtype())
                            ? layers::Cast(entry.gradient, entry.weights->dtype, site)
                            : entry.gradient;
  Op op = MergeOp("gradient_merge_rows", merge, round, sum, rows);
  op.SetInput("Touched", {touched.name()}).SetOutput("TouchedOut", {touched.name()});
  return call.AppendFor(std::move(op));
}

}  // namespace

MergeRound AppendGradientMerge(const GradientMerge& merge, std::vector<NamedGradient>* gradients,
                               const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  call.Enforce(merge.steps > 0, "gradient_merge.steps = ", merge.steps,
               ", expected a positive number");
  const auto number = [&](int64_t value) {
    return layers::FillConstant({1}, DType::kInt64, static_cast<double>(value), site);
  };
  const Block& root = *DefaultMainProgram().root();
  MergeRound round;
  round.begin = root.ops().size();
  // Counts up from 0, not down from `steps`: so a checkpoint says how many gradients the sums hold,
  // whatever length the rounds have in the program that continues from it.
  const Variable done =
      CreatePersistable(UniquePersistableName(kMergedCount), {1}, DType::kInt64, 0.0, site);
  round.count = layers::ElementwiseAdd(done, number(1), {}, site);
  // Not Equal: a program with shorter rounds may continue a checkpoint in the middle of a longer
  // one.
  round.is_last = layers::GreaterEqual(round.count, number(merge.steps), site);
  Op next("where");
  next.SetInput("Condition", {round.is_last.name()});
  next.SetInput("X", {number(0).name()}).SetInput("Y", {round.count.name()});
  Assign(done, std::move(next), site);
  round.end = root.ops().size();
  for (NamedGradient& entry : *gradients) {
    entry.gradient = MergedGradient(merge, round, entry, site);
  }
  return round;
}

bool HasToSlowSchedules(const LearningRate& rate, const GradientMerge& merge, const Site& site) {
  const Block& root = *DefaultMainProgram().root();
  const size_t advance = FindStepAdvance(root);
  if (rate.is_constant() || advance == root.ops().size()) return false;
  const std::set<std::string> scheduled = ScheduledVariables(root, advance);
  if (!scheduled.contains(rate.variable().name())) return false;
  const int64_t found = root.ops()[advance]->Attr<int64_t>(kRunsPerStepAttr, 1);
  if (found == merge.steps) return false;
  const bool is_shared = std::ranges::any_of(root.ops(), [&](const std::unique_ptr<Op>& op) {
    return std::ranges::any_of(op->Input("LearningRate"),
                               [&](const std::string& name) { return scheduled.contains(name); });
  });
  LayerCall("minimize", "minimize", site)
      .Enforce(found == 1 && !is_shared, "gradient_merge.steps = ", merge.steps, ", expected ",
               found, ": the learning rate \"", rate.variable().name(),
               "\" goes by the step counter \"", root.ops()[advance]->Output("Out")[0],
               "\", as that of an optimizer before does");
  return true;
}

void AdvanceSchedulesByRound(const GradientMerge& merge, const MergeRound& round,
                             const Site& site) {
  Block* root = DefaultMainProgram().root();
  const size_t increment = FindStepAdvance(*root);
  const size_t made = root->ops().size();
  const Variable counter(root, root->ops()[increment]->Output("Out")[0]);
  // In the first run of a round, not the last: the rate that the update uses must be that of the
  // whole round.
  const Variable is_first =
      layers::Equal(round.count, layers::FillConstant({1}, DType::kInt64, 1.0, site), site);
  Op add("sum");
  add.SetInput("X", {counter.name(), layers::Cast(is_first, DType::kInt64, site).name()});
  add.SetAttr(kRunsPerStepAttr, merge.steps);
  Assign(counter, std::move(add), site);
  // Puts two groups of ops in place of the increment: those that compute the position in the round,
  // which were appended later, and the new sum. So the counter still advances before the first
  // schedule reads it.
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

Variable AppendNonFiniteCheck(const Variable& squared_norm, const Variable& skip,
                              const Site& site) {
  // One sum over all gradients serves for all: infinities and NaNs survive squaring and adding.
  const Variable finite = layers::IsFinite(squared_norm, site);
  const Variable broken = layers::LogicalNot(finite, site);
  // Only runs that would have updated count as skipped.
  const Variable counted =
      skip.defined() ? layers::LogicalAnd(broken, layers::LogicalNot(skip, site), site) : broken;
  // The optimizers of a program count together, and apart from those of other programs.
  const bool is_there = DefaultMainProgram().root()->FindLocalVar(kSkippedUpdates) != nullptr;
  const std::string name = is_there ? kSkippedUpdates : OwnPersistableName(kSkippedUpdates);
  const Variable count = CreatePersistable(name, {1}, DType::kInt64, 0.0, site);
  Op add("sum");
  add.SetInput("X", {count.name(), layers::Cast(counted, DType::kInt64, site).name()});
  Assign(count, std::move(add), site);
  return broken;
}

}  // namespace skiff
