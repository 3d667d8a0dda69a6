// log_loss: Loss = -Labels * log(Predicted + epsilon) - (1 - Labels) * log(1 - Predicted + epsilon)
// for probabilities. Source: Fluid's log_loss.
//
// Predicted@GRAD = Loss@GRAD * ((1 - Labels) / (1 - Predicted + epsilon)
//                               - Labels / (Predicted + epsilon)).
#include <array>
#include <utility>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/log_loss_formula-inl.h"

}  // namespace

void RegisterLogLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "log_loss",
      .doc =
          "Loss = -Labels * log(Predicted + epsilon) "
          "- (1 - Labels) * log(1 - Predicted + epsilon).",
      .inputs = {{.name = "Predicted", .doc = "Probabilities of the label 1, [N, 1]."},
                 {.name = "Labels", .doc = "0 or 1, or between, [N, 1], of Predicted's dtype."}},
      .outputs = {{.name = "Loss", .doc = "The losses, [N, 1]."}},
      .attrs = {{.name = "epsilon",
                 .type = AttrType::kFloat,
                 .default_value = {},
                 .doc = "A small number that keeps the logarithms finite."}},
      .infer =
          [](OpContext& context) {
            const TensorMeta& predicted = context.Input("Predicted");
            CheckInputLike(context, "Predicted", {-1, 1}, predicted.dtype);
            CheckInputLike(context, "Labels", predicted.shape, predicted.dtype);
            context.SetOutputLike("Loss", "Predicted");
          },
      .in_place = {{"Predicted", "Loss"}, {"Labels", "Loss"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Labels", "Loss@GRAD", "Predicted"}, {"Predicted@GRAD"});
  grad.doc =
      "Predicted@GRAD = Loss@GRAD * ((1 - Labels) / (1 - Predicted + epsilon) - "
      "Labels / (Predicted + epsilon)).";
  grad.in_place = {{"Loss@GRAD", "Predicted@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddLossKernels<LogLossFormula, LogLossGradFormula, LogLossLoops>(registry, "log_loss",
                                                                   kLogLossGrain, kLossGrain);
}

}  // namespace skiff
