#include "framework/builder/gradient_ops.h"

#include <variant>

#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool NeedsClip(const Var& parameter) {
  const auto found = parameter.attrs.find(kNeedClipVarAttr);
  if (found == parameter.attrs.end()) return true;
  const auto* value = std::get_if<int32_t>(&found->second);
  return value == nullptr || *value != 0;
}

Regularizer RegularizerOf(const Var& parameter, const Regularizer& fallback) {
  const auto found = parameter.attrs.find(kRegularizerVarAttr);
  if (found == parameter.attrs.end()) return fallback;
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? fallback : RegularizerFromText(*text);
}

// The attribute with which sums of squares neither overflow nor vanish in float32. Others have the
// same bits.
constexpr const char* kWideFloat32 = "wide_float32";

Variable SquaredNorm(const Variable& x, const std::source_location& site) {
  const LayerCall call("squared_l2_norm", "", site);
  Op op("squared_l2_norm");
  op.SetInput("X", {call.CheckedName(x)});
  if (x.dtype() == DType::kFloat32) op.SetAttr(kWideFloat32, true);
  return call.AppendFor(std::move(op));
}

// max_norm / max(max_norm, the norm of all), of shape [1] and this dtype.
Variable GlobalNormFactor(float max_norm, const Variable& norm_of_all, DType dtype,
                          const std::source_location& site) {
  Variable norm = norm_of_all;
  float limit_value = max_norm;
  if (norm.dtype() != dtype) {
    // Float32 holds no norm of many huge gradients, but a part of it, and a power of two changes no
    // digit of the factor. Of a smaller limit, the part would lose digits; the factor of a norm
    // that float32 doesn't hold is 0 then anyway.
    const float part = max_norm < 0x1p-90f ? 1.0f : 0x1p-32f;
    norm = layers::Cast(layers::Scale(norm, {.scale = part}, site), dtype, site);
    limit_value *= part;
  }
  // The maximum in the divisor makes the factor 1 for small norms, without a branch, and finite for
  // a norm of 0.
  const Variable limit = layers::FillConstant({1}, norm.dtype(), limit_value, site);
  return layers::ElementwiseDiv(limit, layers::ElementwiseMax(norm, limit, {}, site), {}, site);
}

Variable OfDType(const Variable& x, DType dtype, const std::source_location& site) {
  return x.dtype() == dtype ? x : layers::Cast(x, dtype, site);
}

Variable Clipped(const GradientClip& clip, const Variable& gradient, const Variable& factor,
                 const std::source_location& site) {
  switch (clip.kind) {
    case GradientClip::Kind::kNone:
      return gradient;
    case GradientClip::Kind::kValue:
      return layers::Clip(gradient, clip.min, clip.max, site);
    case GradientClip::Kind::kNorm:
      return layers::ClipByNorm(gradient, clip.max_norm, site);
    case GradientClip::Kind::kGlobalNorm:
      return layers::ElementwiseMul(gradient, factor, {}, site);
  }
  return gradient;
}

Variable Decay(const Regularizer& regularizer, const Variable& parameter,
               const std::source_location& site) {
  // The gradient of coefficient · |w| is coefficient · sign(w); that of coefficient / 2 · w² is
  // coefficient · w.
  const bool is_l1 = regularizer.kind == Regularizer::Kind::kL1;
  const Variable direction = is_l1 ? layers::Sign(parameter, site) : parameter;
  return layers::Scale(direction, {.scale = regularizer.coefficient}, site);
}

}  // namespace

Variable SquaredGlobalNorm(const std::vector<NamedGradient>& gradients,
                           const std::source_location& site) {
  std::vector<Variable> squares;
  for (const NamedGradient& entry : gradients) {
    squares.push_back(SquaredNorm(entry.gradient, site));
  }
  const LayerCall call("sum", "", site);
  Op op("sum");
  op.SetInput("X", call.CheckedNames(squares));
  if (gradients[0].gradient.dtype() == DType::kFloat32) op.SetAttr(kWideFloat32, true);
  return call.AppendFor(std::move(op));
}

void MarkParameterOps(size_t first, const std::vector<std::string>& names) {
  const Block& root = *DefaultMainProgram().root();
  for (size_t i = first; i < root.ops().size(); ++i) {
    root.ops()[i]->SetAttr(kOpRoleVarAttr, names);
  }
}

void AppendWidening(const GradientClip& clip, const Regularizer& fallback, bool all,
                    std::vector<NamedGradient>* gradients, const std::source_location& site) {
  const Block& root = *DefaultMainProgram().root();
  for (NamedGradient& entry : *gradients) {
    // Squares and sums of float16 overflow early and those of bfloat16 lose digits, so both steps
    // work in float32. An update op reads two-byte gradients as they are.
    const DType dtype = entry.gradient.dtype();
    if (!IsHalf(dtype)) continue;
    const Var& parameter = *entry.parameter;
    const bool is_read =
        (clip.defined() && NeedsClip(parameter)) || RegularizerOf(parameter, fallback).defined();
    if (!all && !is_read) continue;
    const size_t first = root.ops().size();
    const std::string plain = entry.gradient.name();
    entry.gradient = layers::Cast(entry.gradient, DType::kFloat32, site);
    MarkParameterOps(first, {parameter.name, plain});
  }
}

void AppendClip(const GradientClip& clip, std::vector<NamedGradient>* gradients,
                const std::source_location& site, const Variable& squared_norm,
                const Variable& unscale) {
  const Block& root = *DefaultMainProgram().root();
  // Replaces the gradient by what `made` makes of it.
  const auto replace = [&](NamedGradient* entry, const auto& made) {
    const size_t first = root.ops().size();
    const std::string before = entry->gradient.name();
    entry->gradient = made(entry->gradient);
    MarkParameterOps(first, {entry->parameter->name, before});
  };
  const auto multiply = [&](const Variable& factor) {
    return [&](const Variable& gradient) {
      return layers::ElementwiseMul(gradient, OfDType(factor, gradient.dtype(), site), {}, site);
    };
  };
  std::vector<NamedGradient*> clipped;
  for (NamedGradient& entry : *gradients) {
    const bool is_clipped = clip.defined() && NeedsClip(*entry.parameter);
    if (is_clipped) clipped.push_back(&entry);
    // The factor of a global norm takes the scale with it.
    const bool is_global = is_clipped && clip.kind == GradientClip::Kind::kGlobalNorm;
    if (unscale.defined() && !is_global) replace(&entry, multiply(unscale));
  }
  LayerCall("minimize", "minimize", site)
      .Enforce(!clip.defined() || !clipped.empty(),
               "there is a gradient clip, but every parameter has need_clip = false");
  Variable factor;
  if (clip.kind == GradientClip::Kind::kGlobalNorm) {
    std::vector<NamedGradient> counted;
    for (const NamedGradient* entry : clipped) counted.push_back(*entry);
    // The norm that the check for finite gradients has computed serves here, if it is over the same
    // gradients.
    const bool is_known = squared_norm.defined() && counted.size() == gradients->size();
    Variable norm = layers::Sqrt(is_known ? squared_norm : SquaredGlobalNorm(counted, site), site);
    if (unscale.defined()) {
      norm = layers::ElementwiseMul(norm, OfDType(unscale, norm.dtype(), site), {}, site);
    }
    factor = GlobalNormFactor(clip.max_norm, norm, counted[0].gradient.dtype(), site);
    if (unscale.defined()) factor = multiply(unscale)(factor);
  }
  for (NamedGradient* entry : clipped) {
    replace(entry, [&](const Variable& gradient) { return Clipped(clip, gradient, factor, site); });
  }
}

void AppendRegularization(const Regularizer& fallback, std::vector<NamedGradient>* gradients,
                          const std::source_location& site) {
  Block* root = DefaultMainProgram().root();
  for (NamedGradient& entry : *gradients) {
    const Regularizer regularizer = RegularizerOf(*entry.parameter, fallback);
    if (!regularizer.defined()) continue;
    const size_t first = root->ops().size();
    const std::string plain = entry.gradient.name();
    // Of the master weights where there are any: the rounded parameter would decay in coarse steps.
    const Variable decay = Decay(regularizer, {root, entry.weights->name}, site);
    entry.gradient = layers::Sum({entry.gradient, decay}, site);
    MarkParameterOps(first, {entry.parameter->name, plain});
  }
}

}  // namespace skiff
