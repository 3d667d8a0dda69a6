// Loads and stores of numbers that vector loops compute in float32: where memory holds half, they
// convert in registers. The bits are those of half.h, on every instruction set.
//
// Included once per instruction set, through Highway's foreach_target.
#include <cstdint>

#include "hwy/highway.h"
#include "operators/common/half.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_HALF_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_HALF_LANES_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_HALF_LANES_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_HALF_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The conversions of half.h on vectors. They don't use x86's instructions for some of them, which
// treat NaN or denormal numbers differently. A half is in the lower two bytes of a word. Each case
// (normal, subnormal, infinite, NaN) is computed for all lanes and then selected, as a vector has
// no branches.
template <typename T>
struct HalfLanes;

template <>
struct HalfLanes<Float16> {
  template <class D>
  static HWY_INLINE hn::Vec<D> ToFloats(D floats, hn::Vec<hn::RebindToUnsigned<D>> halves) {
    const hn::RebindToUnsigned<D> d;
    const auto sign = hn::ShiftLeft<16>(hn::And(halves, hn::Set(d, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(halves, hn::Set(d, 0x7fff)));
    // The bias of the exponents differs by 112; the product is exact.
    const auto moved = hn::Mul(hn::BitCast(floats, magnitude), hn::Set(floats, 0x1p112f));
    const auto is_finite = hn::Lt(magnitude, hn::Set(d, uint32_t{0x7c00} << 13));
    const auto wide =
        hn::IfThenElse(is_finite, hn::BitCast(d, moved), hn::Or(magnitude, hn::Set(d, 0x7f800000)));
    return hn::BitCast(floats, hn::Or(sign, wide));
  }

  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> FromFloats(D floats, hn::Vec<D> values) {
    const hn::RebindToUnsigned<D> d;
    const auto all = hn::BitCast(d, values);
    const auto magnitude = hn::And(all, hn::Set(d, 0x7fffffff));
    // Rounds to nearest, ties to even: adds just less than half a unit, and one more if the last
    // bit kept is odd.
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    const auto rebiased = hn::Sub(magnitude, hn::Set(d, (uint32_t{127 - 15} << 23) - 0xfff));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    const auto half = hn::Set(floats, 0.5f);
    // The last bit of 0.5f is the unit of the subnormal numbers, so this addition rounds to
    // multiples of the unit.
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

template <>
struct HalfLanes<BFloat16> {
  template <class D>
  static HWY_INLINE hn::Vec<D> ToFloats(D floats, hn::Vec<hn::RebindToUnsigned<D>> halves) {
    return hn::BitCast(floats, hn::ShiftLeft<16>(halves));
  }

  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> FromFloats(D /*floats*/, hn::Vec<D> values) {
    const hn::RebindToUnsigned<D> d;
    const auto all = hn::BitCast(d, values);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(all, hn::Set(d, 0x7fff)), odd);
    // Sets the quiet bit, so that truncating the fraction can't turn NaN into infinity.
    const auto quiet = hn::Or(all, hn::Set(d, 0x400000));
    const auto is_nan = hn::RebindMask(d, hn::IsNaN(values));
    return hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  }
};

// Returns the numbers from `from` on, which needn't be aligned, as float32.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadWide(D d, const T* from) {
  if constexpr (kIsHalf<T>) {
    const hn::Rebind<uint16_t, D> d_halves;
    const auto halves = hn::LoadU(d_halves, reinterpret_cast<const uint16_t*>(from));
    return HalfLanes<T>::ToFloats(d, hn::PromoteTo(hn::RebindToUnsigned<D>(), halves));
  } else {
    return hn::LoadU(d, from);
  }
}

// Writes the numbers to `to`, rounded to nearest, ties to even, if T is half.
template <class D, typename T>
HWY_INLINE void StoreRounded(hn::Vec<D> values, D d, T* to) {
  if constexpr (kIsHalf<T>) {
    const hn::Rebind<uint16_t, D> d_halves;
    const auto words = HalfLanes<T>::FromFloats(d, values);
    hn::StoreU(hn::TruncateTo(d_halves, words), d_halves, reinterpret_cast<uint16_t*>(to));
  } else {
    hn::StoreU(values, d, to);
  }
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_HALF_LANES_INL_H_
