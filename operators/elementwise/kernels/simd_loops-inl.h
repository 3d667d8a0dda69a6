// The float32 loops of element-wise ops. They are compiled once per instruction set, by the file
// that includes this file through Highway's foreach_target. A loop calls a functor with a Highway
// tag and vectors. The last elements are vectors of one lane, so a loop touches nothing beyond
// them.
//
// A result may share the storage of an operand: a loop reads element i before writing it. Functors
// belong in an anonymous namespace. The loops of formulas are UnaryLoops and BinaryLoops.
#include <cstdint>

#include "hwy/highway.h"
#include "operators/common/cpu/formula-inl.h"
#include "operators/elementwise/kernels/binary.h"

#if defined(SKIFF_OPERATORS_ELEMENTWISE_KERNELS_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_ELEMENTWISE_KERNELS_SIMD_LOOPS_INL_H_
#undef SKIFF_OPERATORS_ELEMENTWISE_KERNELS_SIMD_LOOPS_INL_H_
#else
#define SKIFF_OPERATORS_ELEMENTWISE_KERNELS_SIMD_LOOPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using OneFloatTag = hn::CappedTag<float, 1>;

// Sets out[i] = f(x[i]).
template <class Functor>
HWY_INLINE void UnaryLoop(const Functor& f, const float* x, float* out, int64_t count) {
  const FloatTag d;
  const OneFloatTag one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, out + i);
  for (; i < count; ++i) hn::StoreU(f(one, hn::LoadU(one, x + i)), one, out + i);
}

// Loads the next elements of an operand, or repeats the only element.
template <bool kMoves, class D>
HWY_INLINE hn::Vec<D> LoadOperand(D d, const float* x, int64_t i) {
  if constexpr (kMoves) return hn::LoadU(d, x + i);
  return hn::Set(d, *x);
}

template <bool kXMoves, bool kYMoves, class Functor>
HWY_INLINE void BinaryRun(const Functor& f, const float* x, const float* y, float* out,
                          int64_t count) {
  const FloatTag d;
  const OneFloatTag one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(f(d, LoadOperand<kXMoves>(d, x, i), LoadOperand<kYMoves>(d, y, i)), d, out + i);
  }
  for (; i < count; ++i) {
    hn::StoreU(f(one, LoadOperand<kXMoves>(one, x, i), LoadOperand<kYMoves>(one, y, i)), one,
               out + i);
  }
}

// Sets out[i] = f(x[i * x_step], y[i * y_step]). A step is 0 or 1.
template <class Functor>
HWY_INLINE void BinaryLoop(const Functor& f, const float* x, int64_t x_step, const float* y,
                           int64_t y_step, float* out, int64_t count) {
  if (x_step == 0) {
    BinaryRun<false, true>(f, x, y, out, count);
  } else if (y_step == 0) {
    BinaryRun<true, false>(f, x, y, out, count);
  } else {
    BinaryRun<true, true>(f, x, y, out, count);
  }
}

template <bool kXMoves, bool kYMoves, class D, class Functor>
HWY_INLINE void BinaryGradStep(D d, const Functor& f, const float* x, const float* y,
                               const float* out, const float* dout, float* grad, int64_t i) {
  hn::StoreU(f(d, LoadOperand<kXMoves>(d, x, i), LoadOperand<kYMoves>(d, y, i),
               hn::LoadU(d, out + i), hn::LoadU(d, dout + i)),
             d, grad + i);
}

template <bool kXMoves, bool kYMoves, class Functor>
HWY_INLINE void BinaryGradRun(const Functor& f, const float* x, const float* y, const float* out,
                              const float* dout, float* grad, int64_t count) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    BinaryGradStep<kXMoves, kYMoves>(d, f, x, y, out, dout, grad, i);
  }
  for (; i < count; ++i) {
    BinaryGradStep<kXMoves, kYMoves>(OneFloatTag(), f, x, y, out, dout, grad, i);
  }
}

// Sets grad[i] = f(x[i * x_step], y[i * y_step], out[i], dout[i]).
template <class Functor>
HWY_INLINE void BinaryGradLoop(const Functor& f, const float* x, int64_t x_step, const float* y,
                               int64_t y_step, const float* out, const float* dout, float* grad,
                               int64_t count) {
  if (x_step == 0) {
    BinaryGradRun<false, true>(f, x, y, out, dout, grad, count);
  } else if (y_step == 0) {
    BinaryGradRun<true, false>(f, x, y, out, dout, grad, count);
  } else {
    BinaryGradRun<true, true>(f, x, y, out, dout, grad, count);
  }
}

// Returns the loops of a unary formula; none if it has none for vectors.
template <class Formula>
UnaryFloatLoops UnaryLoops(const OpContext& context) {
  if constexpr (!Formula::kFacts.has_vectors) {
    return {};
  } else {
    const auto made = MakeFormula<Formula>(NumbersOf(context, Formula::kFacts));
    return {[f = made](const float* x, float* out, int64_t count) HWY_ATTR {
              UnaryLoop([&f]<class D, class V>(D, V v) HWY_ATTR { return f.Value(Lanes<D>(v)).v; },
                        x, out, count);
            },
            [f = made](const float* saved, const float* dout, float* dx, int64_t count) HWY_ATTR {
              BinaryLoop([&f]<class D, class V>(D, V s, V d)
                             HWY_ATTR { return f.Gradient(Lanes<D>(s), Lanes<D>(d)).v; },
                         saved, 1, dout, 1, dx, count);
            }};
  }
}

// The loops of a binary formula as functions: BinaryKernelLoop, BinaryGradKernelLoop.
template <class Formula>
struct BinaryLoopsOf {
  static void Forward(const float* x, int64_t x_step, const float* y, int64_t y_step, float* out,
                      int64_t count) {
    BinaryLoop([]<class D, class V>(D, V a, V b)
                   HWY_ATTR { return Formula().Value(Lanes<D>(a), Lanes<D>(b)).v; },
               x, x_step, y, y_step, out, count);
  }
  static void XGradient(const float* x, int64_t x_step, const float* y, int64_t y_step,
                        const float* out, const float* dout, float* grad, int64_t count) {
    BinaryGradLoop(
        []<class D, class V>(D, V a, V b, V o, V d) HWY_ATTR {
          return Formula().XGradient(Lanes<D>(a), Lanes<D>(b), Lanes<D>(o), Lanes<D>(d)).v;
        },
        x, x_step, y, y_step, out, dout, grad, count);
  }
  static void YGradient(const float* x, int64_t x_step, const float* y, int64_t y_step,
                        const float* out, const float* dout, float* grad, int64_t count) {
    BinaryGradLoop(
        []<class D, class V>(D, V a, V b, V o, V d) HWY_ATTR {
          return Formula().YGradient(Lanes<D>(a), Lanes<D>(b), Lanes<D>(o), Lanes<D>(d)).v;
        },
        x, x_step, y, y_step, out, dout, grad, count);
  }
};

// Returns the loops of a binary formula; none if it has none for vectors.
template <class Formula>
BinaryFloatLoops BinaryLoops() {
  using Loops = BinaryLoopsOf<Formula>;
  BinaryFloatLoops loops;
  if constexpr (Formula::kFacts.has_vectors) {
    loops.forward = Loops::Forward;
    if constexpr (!Formula::kFacts.x_gradient.is_passed) loops.grad.x = Loops::XGradient;
    if constexpr (!Formula::kFacts.y_gradient.is_passed) loops.grad.y = Loops::YGradient;
  }
  return loops;
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_ELEMENTWISE_KERNELS_SIMD_LOOPS_INL_H_
