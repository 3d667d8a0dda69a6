// bce_loss: Out = -(Label * log(X) + (1 - Label) * log(1 - X)) for probabilities X, each logarithm
// at least -100, so that 0 and 1 make a finite loss. Source: Fluid's bce_loss, after PyTorch's
// binary_cross_entropy. X outside [0, 1] makes NaN.
//
// X@GRAD = Out@GRAD * (X - Label) / max(X * (1 - X), 1e-12).
#include <array>
#include <utility>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/bce_loss_formula-inl.h"

}  // namespace

void RegisterBceLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "bce_loss",
      .doc =
          "Out = -(Label * log(X) + (1 - Label) * log(1 - X)), each logarithm at least -100; NaN "
          "for X outside [0, 1].",
      .inputs = {{.name = "X", .doc = "Probabilities of the label 1, of any shape."},
                 {.name = "Label", .doc = "0 or 1, or between, of X's shape and dtype."}},
      .outputs = {{.name = "Out", .doc = "The losses, of X's shape."}},
      .infer =
          [](OpContext& context) {
            const TensorMeta& x = context.Input("X");
            CheckInputLike(context, "Label", x.shape, x.dtype);
            context.SetOutputLike("Out", "X");
          },
      .in_place = {{"X", "Out"}, {"Label", "Out"}},
      .elementwise = true};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Label", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD * (X - Label) / max(X * (1 - X), 1e-12).";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}, {"X", "X@GRAD"}};
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddLossKernels<BceLossFormula, BceLossGradFormula, BceLossLoops>(registry, "bce_loss",
                                                                   kLogLossGrain, kLossGrain);
}

}  // namespace skiff
