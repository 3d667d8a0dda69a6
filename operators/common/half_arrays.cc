#include "operators/common/half_arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "operators/common/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/half_arrays.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void ToFloats(const uint16_t* halves, int64_t count, float* floats) {
  const hn::ScalableTag<float> d;
  const auto* from = reinterpret_cast<const T*>(halves);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(LoadWide(d, from + i), d, floats + i);
  for (; i < count; ++i) floats[i] = static_cast<float>(from[i]);
}

template <typename T>
void FromFloats(const float* floats, int64_t count, uint16_t* halves) {
  const hn::ScalableTag<float> d;
  auto* to = reinterpret_cast<T*>(halves);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) StoreRounded(hn::LoadU(d, floats + i), d, to + i);
  for (; i < count; ++i) to[i] = T(floats[i]);
}

HalfArrays LoopsOf(DType dtype) {
  const bool is_float16 = dtype == DType::kFloat16;
  return {.to_floats = is_float16 ? ToFloats<Float16> : ToFloats<BFloat16>,
          .from_floats = is_float16 ? FromFloats<Float16> : FromFloats<BFloat16>};
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(LoopsOf);

#if defined(__x86_64__)

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512bf16")

// Rounds by the processor's instruction, which has the same bits but for denormal numbers: it takes
// them as zeros.
void RoundNatively(const float* floats, int64_t count, uint16_t* halves) {
  constexpr int kDenormal = 0x20;
  constexpr int64_t kStep = 32;
  const HalfArrays exact = HWY_DYNAMIC_DISPATCH(LoopsOf)(DType::kBFloat16);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m512 low = _mm512_loadu_ps(floats + i);
    const __m512 high = _mm512_loadu_ps(floats + i + 16);
    if ((_mm512_fpclass_ps_mask(low, kDenormal) | _mm512_fpclass_ps_mask(high, kDenormal)) != 0) {
      exact.from_floats(floats + i, kStep, halves + i);
    } else {
      _mm512_storeu_si512(halves + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
  }
  exact.from_floats(floats + i, count - i, halves + i);
}

HWY_POP_ATTRIBUTES

#else

void RoundNatively(const float*, int64_t, uint16_t*) {}  // UsesAvx512Bf16() is false

#endif

}  // namespace

HalfArrays HalfArraysOf(DType dtype) {
  SKIFF_ENFORCE(IsHalf(dtype), kInvalidArgument, "arrays of ", dtype,
                ", expected float16 or bfloat16");
  HalfArrays arrays = HWY_DYNAMIC_DISPATCH(LoopsOf)(dtype);
  if (dtype == DType::kBFloat16 && UsesAvx512Bf16()) arrays.from_floats = RoundNatively;
  return arrays;
}

}  // namespace skiff
#endif  // HWY_ONCE
