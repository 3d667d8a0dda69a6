#include "operators/nn/kernels/gelu_rows.h"

#include <tuple>
#include <type_traits>

#include "operators/common/cpu/float_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/kernels/gelu_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/formula-inl.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/common/gelu_formula-inl.h"

// Elements [i, i + lanes of d) of a row.
template <class D, typename T>
HWY_INLINE void GeluStep(D d, bool approximate, const T* x, const float* bias, int64_t i, T* out) {
  const Lanes<D> biased(hn::Add(LoadWide(d, x + i), hn::LoadU(d, bias + i)));
  StoreRounded(Gelu(biased, approximate).v, d, out + i);
}

template <typename T>
void Forward(bool approximate, const T* x, const float* bias, int64_t count, T* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) GeluStep(d, approximate, x, bias, i, out);
  for (; i < count; ++i) GeluStep(one, approximate, x, bias, i, out);
}

template <class D, typename T>
HWY_INLINE void GeluGradStep(D d, bool approximate, const T* x, const float* bias, const T* dout,
                             int64_t i, T* dx, float* sums) {
  const Lanes<D> biased(hn::Add(LoadWide(d, x + i), hn::LoadU(d, bias + i)));
  const auto gradient = hn::Mul(LoadWide(d, dout + i), GeluSlope(biased, approximate).v);
  if (dx != nullptr) StoreRounded(gradient, d, dx + i);
  hn::StoreU(hn::Add(hn::LoadU(d, sums + i), gradient), d, sums + i);
}

template <typename T>
void Backward(bool approximate, const T* x, const float* bias, const T* dout, int64_t count, T* dx,
              float* sums) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) GeluGradStep(d, approximate, x, bias, dout, i, dx, sums);
  for (; i < count; ++i) GeluGradStep(one, approximate, x, bias, dout, i, dx, sums);
}

FloatLoops<GeluRows> Rows() {
  return {{Forward<float>, Backward<float>},
          {Forward<Float16>, Backward<Float16>},
          {Forward<BFloat16>, Backward<BFloat16>}};
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(Rows);

void ForwardInDoubles(bool approximate, const double* x, const double* bias, int64_t count,
                      double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = HWY_NAMESPACE::Gelu(x[i] + bias[i], approximate);
}

void BackwardInDoubles(bool approximate, const double* x, const double* bias, const double* dout,
                       int64_t count, double* dx, double* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const double gradient = dout[i] * HWY_NAMESPACE::GeluSlope(x[i] + bias[i], approximate);
    if (dx != nullptr) dx[i] = gradient;
    sums[i] += gradient;
  }
}

}  // namespace

template <typename T>
GeluRows<T> GeluRowsOf() {
  if constexpr (std::is_same_v<T, double>) {
    return {ForwardInDoubles, BackwardInDoubles};
  } else {
    return std::get<GeluRows<T>>(HWY_DYNAMIC_DISPATCH(Rows)());
  }
}

template GeluRows<float> GeluRowsOf<float>();
template GeluRows<double> GeluRowsOf<double>();
template GeluRows<Float16> GeluRowsOf<Float16>();
template GeluRows<BFloat16> GeluRowsOf<BFloat16>();

}  // namespace skiff
#endif
