#include "framework/transpiler/fuse_softmax_loss_pass.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

bool IsAlongLastAxis(const Match& match, const std::string& softmax) {
  const int64_t axis = match.ContextOfMaker(softmax).IntAttr("axis");
  return axis == -1 || axis == match.ShapeOf("p").rank() - 1;
}

// It stands where the softmax did, since p may have other readers in between. Of several losses on
// one softmax only the first is fused.
Fusion Loss() {
  return {.before = R"({Out: [p]} = softmax(X: [x])
                       {Y: [y]} = cross_entropy(X: [p], Label: [label]))",
          .condition =
              [](const Match& match) {
                return IsAlongLastAxis(match, "p") &&
                       match.ShapeOf("label").rank() == match.ShapeOf("p").rank();
              },
          .after = {{.op = R"({Softmax: [p], Loss: [y]} =
                              softmax_with_cross_entropy(Logits: [x], Label: [label]))",
                     .at = "p",
                     .if_read = {"p"},
                     .attributes_of = {"y"}}}};
}

// The fused gradient is (p - label) · dy, which is right only for the gradient of this very pair.
Fusion LossGradient() {
  return {.gradient_of = "p",
          .before = R"(
              {X@GRAD: [dp]} = cross_entropy_grad(X: [p], Label: [label], Y@GRAD: [dy])
              {X@GRAD: [dx]} = softmax_grad(Out: [p], Out@GRAD: [dp]))",
          .condition =
              [](const Match& match) {
                return IsAlongLastAxis(match, "dx") && match.HaveSameAttributes("dp", "y");
              },
          .after = {{.op = R"({Logits@GRAD: [dx]} = softmax_with_cross_entropy_grad(
                              Label: [label], Softmax: [p], Loss@GRAD: [dy]))",
                     .at = "dx",
                     .attributes_of = {"dp"}}}};
}

// Whether instruction i is the gradient of this loss of classes.
bool IsGradientOf(const Plan& plan, const PlanRewrite& rewrite, size_t i, const Instruction& loss) {
  if (i >= plan.instructions.size() || !rewrite.Is(i, "softmax_with_cross_entropy_grad")) {
    return false;
  }
  const Instruction& gradient = plan.instructions[i];
  const OpContext context = ContextOf(plan, gradient);
  return gradient.InputIn("Softmax") == loss.OutputIn("Softmax") &&
         gradient.InputIn("Label") == loss.InputIn("Label") && !context.Attr<bool>("soft_label") &&
         context.IntAttr("ignore_index") == ContextOf(plan, loss).IntAttr("ignore_index");
}

// Returns the same instruction with skip_ignored.
Instruction Skipping(Instruction loss, Plan* plan) {
  auto op = std::make_shared<Op>(*loss.op);
  // As that of each op that a pass makes, the role is there even if it is the default.
  op->SetAttr(kOpRoleAttr, op->role());
  op->SetAttr("skip_ignored", true);
  loss.op = op.get();
  plan->made_ops.push_back(std::move(op));
  return loss;
}

// Has losses skip whose Softmax nobody but their gradient reads. Without a Softmax, as in
// evaluation, nobody can read what is skipped.
int64_t SkipIgnored(const PassContext& context, Plan* plan) {
  PlanRewrite rewrite(context, plan);
  for (size_t at = 0; at < plan->instructions.size(); ++at) {
    if (!rewrite.Is(at, "softmax_with_cross_entropy")) continue;
    const Instruction& loss = plan->instructions[at];
    const OpContext op = ContextOf(*plan, loss);
    if (op.Attr<bool>("soft_label") || op.Attr<bool>("skip_ignored")) continue;
    Replacement skipping{.dropped = {at}};
    const ValueId softmax = loss.OutputIn("Softmax");
    if (softmax) {
      for (const size_t i : rewrite.ReadersOf(softmax)) {
        if (IsGradientOf(*plan, rewrite, i, loss)) skipping.dropped.insert(i);
      }
    }
    if (!rewrite.MayVanish(softmax, skipping.dropped)) continue;
    for (const size_t i : skipping.dropped) {
      skipping.made.emplace(i, Skipping(plan->instructions[i], plan));
    }
    rewrite.TryReplace(std::move(skipping));
  }
  return rewrite.Apply();
}

}  // namespace

PassReport FuseSoftmaxLossPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions = *new FusionList{Loss(), LossGradient()};
  const int64_t made = ApplyFusions(context, fusions, plan).changes;
  const int64_t skipping = SkipIgnored(context, plan);
  return {.pass = {},
          .changes = made + skipping,
          .summary = StrCat(made, " instructions fused, ", skipping, " skip ignored items")};
}

}  // namespace skiff
