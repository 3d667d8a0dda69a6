#include "framework/builder/gradients.h"

#include <algorithm>
#include <optional>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/call_site.h"
#include "framework/builder/control.h"
#include "framework/builder/current_block.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/gradient_ops.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/scaled_loss.h"
#include "framework/builder/tensor_layers.h"
#include "framework/ir/op_role.h"
#include "framework/ir/restored_program.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

// Divides the gradients by the scale, which then changes.
void Unscale(const LossScaling& scaling, const LossScale& scale, std::vector<Variable>* gradients,
             const std::source_location& site) {
  std::vector<NamedGradient> named;
  for (Variable& gradient : *gradients) {
    if (IsHalf(gradient.dtype())) gradient = layers::Cast(gradient, DType::kFloat32, site);
    named.push_back({.gradient = gradient});
  }
  // Before the division, which makes no infinity finite.
  const Variable finite = layers::IsFinite(SquaredGlobalNorm(named, site), site);
  AppendScaleUpdate(scaling, scale, layers::LogicalNot(finite, site), {}, site);
  for (Variable& gradient : *gradients) {
    const Variable inverse = gradient.dtype() == DType::kFloat32
                                 ? scale.inverse
                                 : layers::Cast(scale.inverse, gradient.dtype(), site);
    gradient = layers::ElementwiseMul(gradient, inverse, {}, site);
  }
}

}  // namespace

std::vector<Variable> Gradients(const Variable& loss, const std::vector<Variable>& xs,
                                const GradientsOptions& options, std::source_location site) {
  RestoredProgram main(&DefaultMainProgram());
  RestoredProgram startup(&DefaultStartupProgram());
  const LayerCall call("gradients", "gradients", site);
  call.CheckedName(loss);
  call.Enforce(!xs.empty(), "there are no variables to differentiate with respect to");
  Block* root = DefaultMainProgram().root();
  call.Enforce(&CurrentBlock() == root, "a sub-block is open; differentiate in the root block");
  RewriteDefaultPrograms(loss, options.precision, site);
  const OpRoleGuard role(kRoleBackward);
  const std::optional<LossScaling> scaling = ScalingOf(options.precision);
  std::optional<LossScale> scale;
  if (scaling) scale = AppendLossScale(*scaling, site);
  const Variable differentiated = scale ? ScaledLoss(loss, *scale, site) : loss;
  BackwardResult result;
  try {
    result = AppendBackward(DefaultOpRegistry(), &DefaultMainProgram(), differentiated.name(),
                            {.inputs = call.CheckedNames(xs), .no_grad = options.no_grad});
  } catch (const Error& error) {
    throw error.WithContext(SiteText(site));
  }
  std::vector<Variable> gradients;
  for (const Variable& x : xs) gradients.emplace_back(root, result.gradients.at(x.name()));
  if (scale) Unscale(*scaling, *scale, &gradients, site);
  main.Stay();
  startup.Stay();
  return gradients;
}

}  // namespace skiff
