// margin_rank_loss: Out = max(0, margin - Label * (X1 - X2)), where Label is 1 if X1 should rank
// above X2, and -1 if below. Source: margin_rank_loss of Fluid 1.8.
//
// X2@GRAD = Out@GRAD * Label where Out > 0, else 0; X1@GRAD = -X2@GRAD.
#include <array>
#include <utility>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/margin_rank_loss_formula-inl.h"

}  // namespace

void RegisterMarginRankLoss(OpRegistry& registry) {
  OpDef def = {.type = "margin_rank_loss",
               .doc = "Out = max(0, margin - Label * (X1 - X2)).",
               .inputs = {{.name = "X1", .doc = "Scores of the left items, [N, 1]."},
                          {.name = "X2", .doc = "Scores of the right items, [N, 1]."},
                          {.name = "Label", .doc = "1 or -1: whether X1 ranks above X2; [N, 1]."}},
               .outputs = {{.name = "Activated",
                            .doc = "1 where Out is above 0, for the gradient.",
                            .intermediate = true},
                           {.name = "Out", .doc = "The losses, [N, 1]."}},
               .attrs = {{.name = "margin",
                          .type = AttrType::kFloat,
                          .default_value = 0.0f,
                          .doc = "The difference below which a pair in the right order still has a "
                                 "loss."}},
               .infer =
                   [](OpContext& context) {
                     const TensorMeta& label = context.Input("Label");
                     CheckInputLike(context, "Label", {-1, 1}, label.dtype);
                     CheckInputLike(context, "X1", label.shape, label.dtype);
                     CheckInputLike(context, "X2", label.shape, label.dtype);
                     context.SetOutputLike("Activated", "Label");
                     context.SetOutputLike("Out", "X1");
                   },
               .in_place = {{"X1", "Out"}, {"X2", "Activated"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Activated", "Out@GRAD", "Label"}, {"X1@GRAD", "X2@GRAD"});
  grad.doc = "X2@GRAD = Out@GRAD * Label * Activated, X1@GRAD = -X2@GRAD.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& label = context.Input("Label");
    CheckInputLike(context, "Activated", label.shape, label.dtype);
    CheckInputLike(context, "Out@GRAD", label.shape, label.dtype);
    context.SetOutputLike("X1@GRAD", "Label");
    context.SetOutputLike("X2@GRAD", "Label");
  };
  grad.in_place = {{"Out@GRAD", "X1@GRAD"}, {"Activated", "X2@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddLossKernels<MarginRankLossFormula, MarginRankLossGradFormula, MarginRankLossLoops>(
      registry, "margin_rank_loss", kLossGrain, kLossGrain);
}

}  // namespace skiff
