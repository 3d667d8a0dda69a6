// A conversion works on the bits, so that it is the same on every instruction set and in half.h,
// whose scalar conversions take the rest of an array. Each case (normal, subnormal, infinite, NaN)
// is computed for all lanes and then selected, as a vector has no branches.
#include "operators/common/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/half.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
using FloatVec = hn::Vec<Floats>;
using WordVec = hn::Vec<Words>;

// The conversions of half.h on vectors. They don't use x86's instructions for some of them, which
// treat NaN differently. A half is in the lower two bytes of a word.
struct Float16Lanes {
  using Number = Float16;

  static HWY_INLINE FloatVec ToFloats(WordVec halves) {
    const Words d;
    const auto sign = hn::ShiftLeft<16>(hn::And(halves, hn::Set(d, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(halves, hn::Set(d, 0x7fff)));
    // The bias of the exponents differs by 112; the product is exact.
    const Floats floats;
    const auto moved = hn::Mul(hn::BitCast(floats, magnitude), hn::Set(floats, 0x1p112f));
    const auto is_finite = hn::Lt(magnitude, hn::Set(d, uint32_t{0x7c00} << 13));
    const auto wide =
        hn::IfThenElse(is_finite, hn::BitCast(d, moved), hn::Or(magnitude, hn::Set(d, 0x7f800000)));
    return hn::BitCast(floats, hn::Or(sign, wide));
  }

  static HWY_INLINE WordVec FromFloats(FloatVec values) {
    const Words d;
    const Floats floats;
    const auto all = hn::BitCast(d, values);
    const auto magnitude = hn::And(all, hn::Set(d, 0x7fffffff));
    // Rounds to nearest, ties to even: adds just less than half a unit, and one more if the last
    // bit kept is odd.
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    const auto rebiased = hn::Sub(magnitude, hn::Set(d, (uint32_t{127 - 15} << 23) - 0xfff));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    const auto half = hn::Set(floats, 0.5f);
    // The last bit of 0.5f is the unit of the subnormal numbers, so this addition rounds to it.
    const auto sum = hn::Add(hn::BitCast(floats, magnitude), half);
    const auto subnormal = hn::Sub(hn::BitCast(d, sum), hn::BitCast(d, half));
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x1ff));
    auto bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), subnormal, normal);
    bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x47800000)), bits, hn::Set(d, 0x7c00));
    bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000)),
                          hn::Or(payload, hn::Set(d, 0x7e00)), bits);
    return hn::Or(hn::And(hn::ShiftRight<16>(all), hn::Set(d, 0x8000)), bits);
  }
};

struct BFloat16Lanes {
  using Number = BFloat16;

  static HWY_INLINE FloatVec ToFloats(WordVec halves) {
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(halves));
  }

  static HWY_INLINE WordVec FromFloats(FloatVec values) {
    const Words d;
    const auto all = hn::BitCast(d, values);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(all, hn::Set(d, 0x7fff)), odd);
    // Sets the quiet bit, so that truncating the fraction can't turn NaN into infinity.
    const auto quiet = hn::Or(all, hn::Set(d, 0x400000));
    const auto is_nan = hn::RebindMask(d, hn::IsNaN(values));
    return hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  }
};

template <class Lanes>
void ToFloats(const uint16_t* halves, int64_t count, float* floats) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto words = hn::PromoteTo(Words(), hn::LoadU(Halves(), halves + i));
    hn::StoreU(Lanes::ToFloats(words), Floats(), floats + i);
  }
  for (; i < count; ++i) {
    typename Lanes::Number number;
    number.bits = halves[i];
    floats[i] = static_cast<float>(number);
  }
}

template <class Lanes>
void FromFloats(const float* floats, int64_t count, uint16_t* halves) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto words = Lanes::FromFloats(hn::LoadU(Floats(), floats + i));
    hn::StoreU(hn::TruncateTo(Halves(), words), Halves(), halves + i);
  }
  for (; i < count; ++i) halves[i] = typename Lanes::Number(floats[i]).bits;
}

HalfArrays LoopsOf(DType dtype) {
  const bool is_float16 = dtype == DType::kFloat16;
  return {.to_floats = is_float16 ? ToFloats<Float16Lanes> : ToFloats<BFloat16Lanes>,
          .from_floats = is_float16 ? FromFloats<Float16Lanes> : FromFloats<BFloat16Lanes>};
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
