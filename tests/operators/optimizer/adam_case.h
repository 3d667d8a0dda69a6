// Common code of the cases of Adam and of the ops built on it: moments, powers, Adam's step.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {

// Numbers that are exact in float32, as the attributes are floats.
struct AdamSettings {
  double beta1 = 0.875;
  double beta2 = 0.96875;
  double epsilon = 0x1.0p-20;
  bool global_pow = false;  // the powers stay
};

// With an epsilon that counts.
inline constexpr AdamSettings kCoarseAdam = {.epsilon = 0x1.0p-10};

// Advances the moments of element i. Returns the step of a rate of 1 in the textbook's form:
// bias-corrected moments, then the quotient.
inline double AdamStep(UpdatedParameter& p, size_t i, const AdamSettings& settings) {
  const double g = p.grad[i];
  double& m = p.states[0][i];
  double& v = p.states[1][i];
  m = settings.beta1 * m + (1 - settings.beta1) * g;
  v = settings.beta2 * v + (1 - settings.beta2) * g * g;
  const double unbiased_m = m / (1 - p.scalars[0]);
  const double unbiased_v = v / (1 - p.scalars[1]);
  return unbiased_m / (std::sqrt(unbiased_v) + settings.epsilon);
}

inline void AdvancePowers(UpdatedParameter& p, const AdamSettings& settings) {
  if (settings.global_pow) return;
  p.scalars[0] *= settings.beta1;
  p.scalars[1] *= settings.beta2;
}

// `attrs` are the attributes that only `type` has.
inline UpdateCase AdamCase(const std::string& name, const std::string& type,
                           const AdamSettings& settings, AttributeMap attrs,
                           std::function<void(UpdatedParameter&)> update) {
  attrs["beta1"] = static_cast<float>(settings.beta1);
  attrs["beta2"] = static_cast<float>(settings.beta2);
  attrs["epsilon"] = static_cast<float>(settings.epsilon);
  if (settings.global_pow) attrs["use_global_beta_pow"] = true;
  return {.name = name,
          .type = type,
          .states = {{.input = "Moment1", .output = "Moment1Out"},
                     {.input = "Moment2", .output = "Moment2Out", .low = 0.01}},
          .scalars = {{.input = "Beta1Pow", .output = "Beta1PowOut", .value = 0.765625},
                      {.input = "Beta2Pow", .output = "Beta2PowOut", .value = 0.9375}},
          .attrs = std::move(attrs),
          .update = std::move(update)};
}

}  // namespace skiff::harness
