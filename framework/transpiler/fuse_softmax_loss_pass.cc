#include "framework/transpiler/fuse_softmax_loss_pass.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/transpiler/fusion.h"

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

// Whether the logits are half, the loss with output y is a float32 one of classes along the last
// axis, and the gradient of the logits `dx`, if there is one, is of this very loss.
bool IsLossOfHalf(const Match& match) {
  const auto dtype_of = [&](const char* name) { return match.plan[match[name]].meta.dtype; };
  if (!IsHalf(dtype_of("half")) || dtype_of("x") != DType::kFloat32) return false;
  if (match["dhalf"] && dtype_of("dhalf") != dtype_of("half")) return false;
  const OpContext loss = match.ContextOfMaker("y");
  return IsAlongLastAxis(match, "p") && !loss.Attr<bool>("soft_label") &&
         loss.Attr<bool>("use_softmax") && (!match["dx"] || match.HaveSameAttributes("dx", "y"));
}

// A loss of logits in half, which stay half: their probabilities, in float32, would take more
// memory than all else that the loss needs.
Fusion HalfLoss() {
  return {.before = R"({Out: [x]} = cast(X: [half])
                       {Softmax: [p], Loss: [y]} =
                           softmax_with_cross_entropy(Logits: [x], Label: [label])
                       {Logits@GRAD: [dx]} = softmax_with_cross_entropy_grad(
                           Label: [label], Softmax: [p], Loss@GRAD: [dy])
                       {Out: [dhalf]} = cast(X: [dx]))",
          .condition = IsLossOfHalf,
          .after = {{.op = "{Loss: [y]} = logits_cross_entropy(Logits: [half], Label: [label])",
                     .at = "y",
                     .attributes_of = {"y"}},
                    {.op = R"({Logits@GRAD: [dhalf]} = logits_cross_entropy_grad(
                              Logits: [half], Label: [label], Loss@GRAD: [dy]))",
                     .at = "dhalf",
                     .origin = "dx",
                     .attributes_of = {"dx"}}}};
}

// The same without a gradient, as in evaluation.
Fusion HalfLossOnly() {
  return {.before = R"({Out: [x]} = cast(X: [half])
                       {Softmax: [p], Loss: [y]} =
                           softmax_with_cross_entropy(Logits: [x], Label: [label]))",
          .condition = IsLossOfHalf,
          .after = {{.op = "{Loss: [y]} = logits_cross_entropy(Logits: [half], Label: [label])",
                     .at = "y",
                     .attributes_of = {"y"}}}};
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
  static const auto& fusions = *new std::vector<Fusion>{Loss(), LossGradient()};
  static const auto& of_half = *new std::vector<Fusion>{HalfLoss(), HalfLossOnly()};
  const int64_t made =
      ApplyFusions(context, fusions, plan).changes + ApplyFusions(context, of_half, plan).changes;
  const int64_t skipping = SkipIgnored(context, plan);
  return {.pass = {},
          .changes = made + skipping,
          .summary = StrCat(made, " instructions fused, ", skipping, " skip ignored items")};
}

}  // namespace skiff
