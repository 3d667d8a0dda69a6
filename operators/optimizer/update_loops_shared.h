// The element loops of the optimizers, float32 in vector registers and threaded.
//
// Outputs may be their own inputs (ParamOut = Param, …), else they don't overlap. An element's
// result doesn't depend on where it lies in the array: with parameters in one flat buffer the same
// bits come out as one by one. float64 goes the same way in plain loops.
#pragma once

#include <cstdint>

namespace skiff {

// param_out = param - learning_rate * grad
template <typename T>
struct SgdArrays {
  const T* param;
  const T* grad;
  T* param_out;
};
void SgdUpdate(const SgdArrays<float>& arrays, int64_t count, double learning_rate);
void SgdUpdate(const SgdArrays<double>& arrays, int64_t count, double learning_rate);

struct MomentumSettings {
  double learning_rate = 0;
  double mu = 0;
  double rescale_grad = 1;
  double l2_decay = 0;  // 0: none
  bool use_nesterov = false;
};
// g = grad * rescale_grad + l2_decay * param; velocity_out = mu * velocity + g;
// param_out = param - learning_rate * velocity_out, Nesterov: … * (g + mu * velocity_out).
template <typename T>
struct MomentumArrays {
  const T* param;
  const T* grad;
  const T* velocity;
  T* param_out;
  T* velocity_out;
};
void MomentumUpdate(const MomentumArrays<float>& arrays, int64_t count,
                    const MomentumSettings& settings);
void MomentumUpdate(const MomentumArrays<double>& arrays, int64_t count,
                    const MomentumSettings& settings);

struct AdamSettings {
  double beta1 = 0;
  double beta2 = 0;
  double step_size = 0;  // learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
  double epsilon = 0;    // times sqrt(1 - beta2^t)
};
// moment1_out = beta1 * moment1 + (1 - beta1) * grad;
// moment2_out = beta2 * moment2 + (1 - beta2) * grad²;
// param_out = param - step_size * moment1_out / (sqrt(moment2_out) + epsilon)
template <typename T>
struct AdamArrays {
  const T* param;
  const T* grad;
  const T* moment1;
  const T* moment2;
  T* param_out;
  T* moment1_out;
  T* moment2_out;
};
void AdamUpdate(const AdamArrays<float>& arrays, int64_t count, const AdamSettings& settings);
void AdamUpdate(const AdamArrays<double>& arrays, int64_t count, const AdamSettings& settings);

}  // namespace skiff
