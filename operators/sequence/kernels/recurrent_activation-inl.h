// Activations of rows, and the gradients through them.
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "operators/common/cpu/simd_math-inl.h"
#include "operators/sequence/kernels/recurrent_activation.h"

#if defined(SKIFF_OPERATORS_SEQUENCE_KERNELS_RECURRENT_ACTIVATION_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_SEQUENCE_KERNELS_RECURRENT_ACTIVATION_INL_H_
#undef SKIFF_OPERATORS_SEQUENCE_KERNELS_RECURRENT_ACTIVATION_INL_H_
#else
#define SKIFF_OPERATORS_SEQUENCE_KERNELS_RECURRENT_ACTIVATION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct SigmoidOf {
  template <class D, class V>
  V operator()(D d, V x) const {
    // exp(-|x|) can't overflow.
    const V e = ExpOfNegative(d, hn::Neg(hn::Abs(x)));
    const V one = hn::Set(d, 1.0f);
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
  double operator()(double x) const { return 1 / (1 + std::exp(-x)); }
};

struct TanhOf {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Tanh(d, x);
  }
  double operator()(double x) const { return std::tanh(x); }
};

template <class Function>
void ActivateEach(const Function& f, double* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
}

template <class Function>
void ActivateEach(const Function& f, float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, x + i);
  for (; i < count; ++i) hn::StoreU(f(one, hn::LoadU(one, x + i)), one, x + i);
}

// to += from
template <typename T, typename From>
void AddRow(const From* HWY_RESTRICT from, int64_t count, T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < count; ++i) to[i] += static_cast<T>(from[i]);
}

// gates += input + bias, of which one may be nullptr
template <typename T, typename Input>
void AddInput(const Input* HWY_RESTRICT input, const T* HWY_RESTRICT bias, int64_t count,
              T* HWY_RESTRICT gates) {
  if (input == nullptr) return AddRow(bias, count, gates);
  if (bias == nullptr) return AddRow(input, count, gates);
  for (int64_t i = 0; i < count; ++i) gates[i] += static_cast<T>(input[i]) + bias[i];
}

// x[i] = f(x[i])
template <typename T>
void Activate(RecurrentActivation activation, T* x, int64_t count) {
  switch (activation) {
    case RecurrentActivation::kIdentity:
      return;
    case RecurrentActivation::kSigmoid:
      return ActivateEach(SigmoidOf(), x, count);
    case RecurrentActivation::kTanh:
      return ActivateEach(TanhOf(), x, count);
    case RecurrentActivation::kRelu:
      // In this order NaN stays.
      for (int64_t i = 0; i < count; ++i) x[i] = std::max(x[i], T{0});
      return;
  }
}

// gradient[i] *= f'(x[i]), given y[i] = f(x[i]).
template <typename T>
void MultiplyByDerivative(RecurrentActivation activation, const T* y, T* gradient, int64_t count) {
  switch (activation) {
    case RecurrentActivation::kIdentity:
      return;
    case RecurrentActivation::kSigmoid:
      for (int64_t i = 0; i < count; ++i) gradient[i] *= y[i] * (1 - y[i]);
      return;
    case RecurrentActivation::kTanh:
      for (int64_t i = 0; i < count; ++i) gradient[i] *= 1 - y[i] * y[i];
      return;
    case RecurrentActivation::kRelu:
      for (int64_t i = 0; i < count; ++i) gradient[i] = y[i] > 0 ? gradient[i] : T{0};
      return;
  }
}

// x[i] = x[i], at most `limit` from 0. In this order NaN stays.
template <typename T>
void Clip(T limit, T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = std::min(std::max(x[i], -limit), limit);
}

// gradient[i] = 0 where Clip gave y[i] = ±limit.
template <typename T>
void DropClipped(T limit, const T* y, T* gradient, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    gradient[i] = y[i] <= -limit || y[i] >= limit ? T{0} : gradient[i];
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
