// Vectors of float32 with which formulas compute as with numbers; see formula.h.
//
// Included once per instruction set, through Highway's foreach_target.
#include <cstddef>
#include <iterator>
#include <limits>

#include "hwy/highway.h"
#include "operators/common/cpu/simd_math-inl.h"
#include "operators/common/formula.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_FORMULA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_FORMULA_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_FORMULA_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_FORMULA_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The functions for numbers.
using skiff::AboveMinusExpReach;
using skiff::AboveMinusInfinity;
using skiff::Abs;
using skiff::AtLeast;
using skiff::AtMost;
using skiff::BelowExpReach;
using skiff::Ceil;
using skiff::Cos;
using skiff::Erf;
using skiff::Exp;
using skiff::Expm1;
using skiff::Floor;
using skiff::Log;
using skiff::Log1p;
using skiff::MulAdd;
using skiff::NearestFinite;
using skiff::NegMulAdd;
using skiff::Normal;
using skiff::NormalAt;
using skiff::OnlyWhere;
using skiff::QuickExp;
using skiff::Round;
using skiff::Sin;
using skiff::Sqrt;
using skiff::Tanh;
using skiff::Trunc;
using skiff::Where;
using skiff::WhereLazily;
using skiff::WrappingAdd;
using skiff::WrappingDivide;
using skiff::WrappingMul;
using skiff::WrappingSub;
using skiff::ZeroWhere;

// A condition of each lane.
template <class D>
struct LanesMask {
  hn::Mask<D> mask;

  friend HWY_INLINE LanesMask operator&&(LanesMask a, LanesMask b) {
    return {hn::And(a.mask, b.mask)};
  }
  friend HWY_INLINE LanesMask operator||(LanesMask a, LanesMask b) {
    return {hn::Or(a.mask, b.mask)};
  }
};

// A vector of Highway's tag D.
template <class D>
struct Lanes {
  using Vector = hn::Vec<D>;
  using Mask = LanesMask<D>;

  HWY_INLINE explicit Lanes(Vector vector) : v(vector) {}
  // The same number in each lane.
  HWY_INLINE explicit Lanes(float number) : v(hn::Set(D(), number)) {}

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hn::Add(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hn::Sub(a.v, b.v)); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hn::Mul(a.v, b.v)); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hn::Div(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a) { return Lanes(hn::Neg(a.v)); }
  friend HWY_INLINE Mask operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE Mask operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE Mask operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE Mask operator>=(Lanes a, Lanes b) { return {hn::Ge(a.v, b.v)}; }
  friend HWY_INLINE Mask operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }

  Vector v;
};

template <class D>
HWY_INLINE Lanes<D> Where(LanesMask<D> condition, Lanes<D> yes, Lanes<D> no) {
  return Lanes<D>(hn::IfThenElse(condition.mask, yes.v, no.v));
}
template <class D, class Yes, class No>
HWY_INLINE Lanes<D> WhereLazily(LanesMask<D> condition, const Yes& yes, const No& no) {
  return Where(condition, yes(), no());
}
template <class D>
HWY_INLINE Lanes<D> OnlyWhere(LanesMask<D> condition, Lanes<D> x) {
  return Lanes<D>(hn::IfThenElseZero(condition.mask, x.v));
}
template <class D>
HWY_INLINE Lanes<D> ZeroWhere(LanesMask<D> condition, Lanes<D> x) {
  return Lanes<D>(hn::IfThenZeroElse(condition.mask, x.v));
}

template <class D>
HWY_INLINE Lanes<D> MulAdd(Lanes<D> a, Lanes<D> b, Lanes<D> c) {
  return Lanes<D>(hn::MulAdd(a.v, b.v, c.v));
}
template <class D>
HWY_INLINE Lanes<D> NegMulAdd(Lanes<D> a, Lanes<D> b, Lanes<D> c) {
  return Lanes<D>(hn::NegMulAdd(a.v, b.v, c.v));
}
template <class D>
HWY_INLINE Lanes<D> WrappingAdd(Lanes<D> a, Lanes<D> b) {
  return a + b;
}
template <class D>
HWY_INLINE Lanes<D> WrappingSub(Lanes<D> a, Lanes<D> b) {
  return a - b;
}
template <class D>
HWY_INLINE Lanes<D> WrappingMul(Lanes<D> a, Lanes<D> b) {
  return a * b;
}
template <class D>
HWY_INLINE Lanes<D> WrappingDivide(Lanes<D> a, Lanes<D> b) {
  return a / b;
}

template <class D>
HWY_INLINE Lanes<D> Abs(Lanes<D> x) {
  return Lanes<D>(hn::Abs(x.v));
}
template <class D>
HWY_INLINE Lanes<D> Exp(Lanes<D> x) {
  return Lanes<D>(ExpOf(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Expm1(Lanes<D> x) {
  return Lanes<D>(hn::Expm1(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Log(Lanes<D> x) {
  return Lanes<D>(LogOf(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Log1p(Lanes<D> x) {
  return Lanes<D>(hn::Log1p(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Erf(Lanes<D> x) {
  return Lanes<D>(ErfOf(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Tanh(Lanes<D> x) {
  return Lanes<D>(hn::Tanh(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> Sqrt(Lanes<D> x) {
  return Lanes<D>(hn::Sqrt(x.v));
}
template <class D>
HWY_INLINE Lanes<D> Floor(Lanes<D> x) {
  return Lanes<D>(hn::Floor(x.v));
}
template <class D>
HWY_INLINE Lanes<D> Ceil(Lanes<D> x) {
  // Without vectors, Highway turns 0 into -0; adding 0 undoes that.
  return Lanes<D>(hn::Ceil(x.v)) + Lanes<D>{0};
}
template <class D>
HWY_INLINE Lanes<D> Trunc(Lanes<D> x) {
  return Lanes<D>(hn::Trunc(x.v));
}
template <class D>
HWY_INLINE Lanes<D> Round(Lanes<D> x) {
  // Not 0.5: added to the float just below 0.5, it would round to 1.
  const Lanes<D> nearly_half(hn::CopySign(hn::Set(D(), 0.49999997f), x.v));
  return Lanes<D>(hn::Trunc((x + nearly_half).v));
}

template <class D>
HWY_INLINE Lanes<D> AtLeast(Lanes<D> bound, Lanes<D> x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // There, hn::Max and hn::Min make the bound of NaN.
  return Where(x < bound, bound, x);
#else
  return Lanes<D>(hn::Max(bound.v, x.v));  // in this order: NaN stays
#endif
}
template <class D>
HWY_INLINE Lanes<D> AtMost(Lanes<D> bound, Lanes<D> x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return Where(x > bound, bound, x);
#else
  return Lanes<D>(hn::Min(bound.v, x.v));
#endif
}
template <class D>
HWY_INLINE Lanes<D> AboveMinusInfinity(Lanes<D> x) {
  return AtLeast(Lanes<D>(std::numeric_limits<float>::lowest()), x);
}
template <class D>
HWY_INLINE Lanes<D> NearestFinite(Lanes<D> x) {
  return AtMost(Lanes<D>(std::numeric_limits<float>::max()), AboveMinusInfinity(x));
}

template <class D>
HWY_INLINE Lanes<D> QuickExp(Lanes<D> x) {
  return Lanes<D>(hn::Exp(D(), x.v));
}
template <class D>
HWY_INLINE Lanes<D> BelowExpReach(Lanes<D> x) {
  return AtMost(Lanes<D>(kExpReach), x);
}
template <class D>
HWY_INLINE Lanes<D> AboveMinusExpReach(Lanes<D> x) {
  return AtLeast(Lanes<D>(-kExpReach), x);
}

// The tail beyond |x| is exp(-x^2 / 2) * t * q(t) with t = 1 / (1 + 0.3 |x| / sqrt(2)) and a
// polynomial q, fitted to a relative error of 2e-8 for |x| < 14.8, where the tail underflows. The
// factor of the exponential keeps its digits on the negative side too, where 1 + erf cancels.
template <class D>
HWY_INLINE Normal<Lanes<D>> NormalAt(Lanes<D> x) {
  using V = Lanes<D>;
  constexpr float kTail[] = {-0.064779178f, 0.242874169f,   -0.256346184f,
                             0.274119076f,  -0.0475231116f, 0.107557222f,
                             0.0741422847f, 0.0853620093f,  0.0845937019f};
  const V one{1};
  const V t = one / MulAdd(V(0.212132034f), Abs(x), one);
  V tail(kTail[0]);
  for (size_t i = 1; i < std::size(kTail); ++i) tail = MulAdd(tail, t, V(kTail[i]));
  const V bell = QuickExp(V(-0.5f) * (x * x));
  tail = tail * t * bell;
  return {.below = Where(x < V{0}, tail, one - tail),
          .density = bell * V(static_cast<float>(kInverseSqrt2Pi))};
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_FORMULA_INL_H_
