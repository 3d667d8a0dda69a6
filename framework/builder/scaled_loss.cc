#include "framework/builder/scaled_loss.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/call_site.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/warning.h"
#include "framework/ir/op_role.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using Site = std::source_location;

bool IsPowerOfTwo(float value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5f;
}

void CheckFactor(const LayerCall& call, const char* option, float value, bool is_in_range,
                 const char* expected) {
  call.Enforce(value > 0 && std::isfinite(value) && is_in_range, "loss_scaling.", option, " = ",
               value, ", expected ", expected);
  if (IsPowerOfTwo(value)) return;
  Warn(StrCat("loss_scaling.", option, " = ", value,
              " is no power of two: gradients lose digits where they are divided by the scale"));
}

}  // namespace

std::optional<HalfReport> RewriteDefaultPrograms(const Variable& loss,
                                                 const PrecisionOptions& precision,
                                                 const Site& site) {
  if (precision.dtype == DType::kFloat32) return std::nullopt;
  try {
    return RewriteToHalf(DefaultOpRegistry(), precision, {loss.name()}, &DefaultMainProgram(),
                         &DefaultStartupProgram());
  } catch (const Error& error) {
    throw error.WithContext(SiteText(site));
  }
}

std::optional<LossScaling> ScalingOf(const PrecisionOptions& precision) {
  if (precision.loss_scaling) return precision.loss_scaling;
  return precision.dtype == DType::kFloat16 ? std::optional<LossScaling>(std::in_place)
                                            : std::nullopt;
}

LossScale AppendLossScale(const LossScaling& scaling, const Site& site) {
  const LayerCall call("minimize", "minimize", site);
  CheckFactor(call, "initial", scaling.initial, true, "a positive number");
  CheckFactor(call, "growth", scaling.growth, scaling.growth >= 1, "a number of at least 1");
  CheckFactor(call, "backoff", scaling.backoff, scaling.backoff <= 1, "a number in (0, 1]");
  call.Enforce(scaling.growth_interval >= 1,
               "loss_scaling.growth_interval = ", scaling.growth_interval,
               ", expected at least 1 update");
  LossScale made;
  made.scale = CreatePersistable(OwnPersistableName(kLossScale), {1}, DType::kFloat32,
                                 static_cast<double>(scaling.initial), site);
  made.inverse = layers::Reciprocal(made.scale, site);
  return made;
}

bool HasLossScale(const Block& root) {
  return std::ranges::any_of(root.vars(), [](const auto& var) {
    return var->name == kLossScale || var->name.starts_with(StrCat(kLossScale, "_"));
  });
}

Variable ScaledLoss(const Variable& loss, const LossScale& scale, const Site& site) {
  return layers::ElementwiseMul(loss, scale.scale, {}, site);
}

void AppendScaleUpdate(const LossScaling& scaling, const LossScale& scale, const Variable& broken,
                       const Variable& skip, const Site& site) {
  if (!scaling.is_dynamic) return;
  const LayerCall call("minimize", "minimize", site);
  const auto connect = [](Op* op, const char* input, const char* output, const Variable& variable) {
    op->SetInput(input, {variable.name()}).SetOutput(output, {variable.name()});
  };
  Op op("update_loss_scaling");
  op.SetInput("FoundInfinite", {broken.name()});
  connect(&op, "PrevLossScaling", "LossScaling", scale.scale);
  connect(&op, "InGoodSteps", "OutGoodSteps",
          CreatePersistable(OwnPersistableName(kGoodSteps), {1}, DType::kInt32, 0.0, site));
  connect(&op, "InBadSteps", "OutBadSteps",
          CreatePersistable(OwnPersistableName(kBadSteps), {1}, DType::kInt32, 0.0, site));
  if (skip.defined()) op.SetInput("StopUpdate", {skip.name()});
  op.SetAttr("incr_every_n_steps", scaling.growth_interval);
  op.SetAttr("decr_every_n_nan_or_inf", int32_t{1});
  op.SetAttr("incr_ratio", scaling.growth).SetAttr("decr_ratio", scaling.backoff);
  call.Append(std::move(op));
}

}  // namespace skiff
