// huber_loss: with r = Y - X, Out = r^2 / 2 where |r| <= delta, else delta * (|r| - delta / 2).
// Source: Fluid's huber_loss, after Huber: Robust Estimation of a Location Parameter (1964).
//
// Y@GRAD = Out@GRAD * min(max(r, -delta), delta), X@GRAD = -Y@GRAD.
#include <array>
#include <utility>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/huber_loss_formula-inl.h"

}  // namespace

void RegisterHuberLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "huber_loss",
      .doc = "With r = Y - X, Out = r^2 / 2 where |r| <= delta, else delta * (|r| - delta / 2).",
      .inputs = {{.name = "X", .doc = "Predictions."},
                 {.name = "Y", .doc = "Targets, of X's shape and dtype."}},
      .outputs = {{.name = "Out", .doc = "The losses, of X's shape."},
                  {.name = "Residual", .doc = "Y - X, for the gradient.", .intermediate = true}},
      .attrs = {{.name = "delta",
                 .type = AttrType::kFloat,
                 .default_value = {},
                 .doc = "The |r| at which the parabola becomes a line.",
                 .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; },
                 .expected = "at least 0"}},
      .infer =
          [](OpContext& context) {
            const TensorMeta& x = context.Input("X");
            CheckInputLike(context, "Y", x.shape, x.dtype);
            context.SetOutputLike("Out", "X");
            context.SetOutputLike("Residual", "X");
          },
      .in_place = {{"X", "Residual"}, {"Y", "Out"}},
      .zero_preserving = true,
      .elementwise = true};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Out@GRAD", "Residual"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = "Y@GRAD = Out@GRAD * min(max(Residual, -delta), delta), X@GRAD = -Y@GRAD.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& residual = context.Input("Residual");
    CheckInputLike(context, "Out@GRAD", residual.shape, residual.dtype);
    context.SetOutputLike("X@GRAD", "Residual");
    context.SetOutputLike("Y@GRAD", "Residual");
  };
  grad.in_place = {{"Out@GRAD", "X@GRAD"}, {"Residual", "Y@GRAD"}};
  grad.zero_preserving = true;
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddLossKernels<HuberLossFormula, HuberLossGradFormula, HuberLossLoops>(registry, "huber_loss",
                                                                         kLossGrain, kLossGrain);
}

}  // namespace skiff
