// The loops of an optimizer's formula. They are compiled once per instruction set by the op's file,
// which includes this file through Highway's foreach_target.
//
// A formula is a struct that computes with numbers of any type, so that CUDA can use the formula as
// well:
//
//   struct SgdFormula {
//     static constexpr size_t kStates = 0;
//     static constexpr std::array<NumberSource, 0> kNumbers{};
//     enum Coefficient { kRate };
//     template <class Numbers>
//     static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
//       coefficients[kRate] = numbers.learning_rate;
//     }
//     template <class Math, class V>
//     static constexpr void Update(const Math& math, V grad, V& param, V* states) {
//       param = math.NegMulAdd(math[kRate], grad, param);
//     }
//   };
//
// `states` holds the op's states in order; Update replaces each by the next value. math[i] is
// coefficient i. Update sees one element at a time. SetCoefficients receives UpdateNumbers: the
// numbers that kNumbers and, if the formula has it, kScalars name, and the norms if it declares
// `static constexpr bool kNeedsNorms = true`. A formula that doesn't change the states declares
// `static constexpr bool kKeepsStates = true`. `static constexpr SparseRule kSparseRule` is the
// effect of a sparse gradient on rows that it lacks; without it, all rows are updated.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "operators/optimizer/kernels/update_loop.h"
#include "operators/optimizer/kernels/update_numbers.h"

#if defined(SKIFF_OPERATORS_OPTIMIZER_KERNELS_UPDATE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_OPTIMIZER_KERNELS_UPDATE_LOOPS_INL_H_
#undef SKIFF_OPERATORS_OPTIMIZER_KERNELS_UPDATE_LOOPS_INL_H_
#else
#define SKIFF_OPERATORS_OPTIMIZER_KERNELS_UPDATE_LOOPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "operators/optimizer/kernels/gradient_formula-inl.h"

// The arithmetic of formulas, on vectors.
template <typename T, class D = hn::ScalableTag<T>>
class VectorMath {
 public:
  using V = hn::Vec<D>;

  explicit VectorMath(const std::array<T, kMaxUpdateCoefficients>& coefficients)
      : coefficients_(coefficients) {}

  HWY_INLINE V operator[](size_t i) const { return hn::Set(D(), coefficients_[i]); }
  HWY_INLINE V Number(double value) const { return hn::Set(D(), static_cast<T>(value)); }
  HWY_INLINE V Add(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE V Sub(V a, V b) const { return hn::Sub(a, b); }
  HWY_INLINE V Mul(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE V Div(V a, V b) const { return hn::Div(a, b); }
  // a * b + c, c - a * b
  HWY_INLINE V MulAdd(V a, V b, V c) const { return hn::MulAdd(a, b, c); }
  HWY_INLINE V NegMulAdd(V a, V b, V c) const { return hn::NegMulAdd(a, b, c); }
  HWY_INLINE V Sqrt(V a) const { return hn::Sqrt(a); }
  HWY_INLINE V Abs(V a) const { return hn::Abs(a); }
  HWY_INLINE V Max(V a, V b) const { return hn::Max(a, b); }
  // The magnitude of a with the sign of b.
  HWY_INLINE V CopySign(V a, V b) const { return hn::CopySign(a, b); }
  // a > b ? x : y
  HWY_INLINE V WhereGreater(V a, V b, V x, V y) const { return hn::IfThenElse(hn::Gt(a, b), x, y); }
  // a == b ? x : y
  HWY_INLINE V WhereEqual(V a, V b, V x, V y) const { return hn::IfThenElse(hn::Eq(a, b), x, y); }
  // a to the power of b, element by element.
  HWY_INLINE V Pow(V a, V b) const {
    HWY_ALIGN T bases[hn::MaxLanes(D())];
    HWY_ALIGN T exponents[hn::MaxLanes(D())];
    hn::Store(a, D(), bases);
    hn::Store(b, D(), exponents);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) bases[i] = std::pow(bases[i], exponents[i]);
    return hn::Load(D(), bases);
  }

 private:
  const std::array<T, kMaxUpdateCoefficients> coefficients_;
};

template <typename T>
struct RangePart {
  const T* param;
  const T* grad;
  T* param_out;
  const T* const* states;
  T* const* states_out;
};

// Gives the formula the gradient as it is.
struct PlainGradient {
  template <class Math, class V>
  HWY_INLINE V operator()(const Math&, V grad, V) const {
    return grad;
  }
};

// Gives the formula the gradient in its form.
template <typename T>
struct Formed {
  GradientForm<T> form;

  template <class Math, class V>
  HWY_INLINE V operator()(const Math& math, V grad, V param) const {
    return GradientFormula::Formed(math, form, grad, param);
  }
};

// A vector of elements.
template <class Formula, typename T>
struct ElementVector {
  using D = hn::ScalableTag<T>;

  // The elements from `i` on; the first element of the gradient is element 0.
  HWY_INLINE ElementVector(const RangePart<T>& part, int64_t i)
      : grad(hn::LoadU(D(), part.grad + i)), param(hn::LoadU(D(), part.param + i)) {
    for (size_t k = 0; k < Formula::kStates; ++k) states[k] = hn::LoadU(D(), part.states[k] + i);
  }

  template <class Gradient>
  HWY_INLINE void Update(const VectorMath<T>& math, const Gradient& gradient) {
    Formula::Update(math, gradient(math, grad, param), param, states);
  }

  HWY_INLINE void Store(const RangePart<T>& part, int64_t i) const {
    hn::StoreU(param, D(), part.param_out + i);
    if constexpr (kMovesStates<Formula>) {
      for (size_t k = 0; k < Formula::kStates; ++k)
        hn::StoreU(states[k], D(), part.states_out[k] + i);
    }
  }

  hn::Vec<D> grad;
  hn::Vec<D> param;
  hn::Vec<D> states[Formula::kStates + 1];
};

// Updates fewer elements than a vector has. It runs the same code on copies, so nothing else is
// touched, and these elements are rounded like all others.
template <class Formula, class Gradient, typename T>
HWY_INLINE void UpdateFew(const VectorMath<T>& math, const Gradient& gradient,
                          const RangePart<T>& part, int64_t count) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  HWY_ALIGN T copies[(Formula::kStates + 2) * kLanes] = {};
  T* states[Formula::kStates + 1];
  const T* const_states[Formula::kStates + 1];
  T* grad = copies + Formula::kStates * kLanes;
  T* param = grad + kLanes;
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  for (size_t k = 0; k < Formula::kStates; ++k) {
    const_states[k] = states[k] = copies + k * kLanes;
    std::memcpy(states[k], part.states[k], bytes);
  }
  std::memcpy(grad, part.grad, bytes);
  std::memcpy(param, part.param, bytes);
  const RangePart<T> copied{param, grad, param, const_states, states};
  ElementVector<Formula, T> vector(copied, 0);
  vector.Update(math, gradient);
  vector.Store(copied, 0);
  std::memcpy(part.param_out, param, bytes);
  if constexpr (kMovesStates<Formula>) {
    for (size_t k = 0; k < Formula::kStates; ++k) {
      std::memcpy(part.states_out[k], states[k], bytes);
    }
  }
}

template <class Formula, class Gradient, typename T>
HWY_INLINE void UpdatePart(const UpdateRange<T>& range, int64_t begin, int64_t end, const T* grad,
                           const Gradient& gradient) {
  const VectorMath<T> math(range.coefficients);
  const T* states[Formula::kStates + 1];
  T* states_out[Formula::kStates + 1];
  for (size_t k = 0; k < Formula::kStates; ++k) {
    states[k] = range.states[k] + begin;
    states_out[k] = range.states_out[k] + begin;
  }
  const RangePart<T> part{range.param + begin, grad, range.param_out + begin, states, states_out};
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t count = end - begin;
  if (count < lanes) {
    UpdateFew<Formula>(math, gradient, part, count);
    return;
  }
  const int64_t rest = count % lanes;
  const int64_t end_of_whole = rest == 0 ? count : count - rest - lanes;
  for (int64_t i = 0; i < end_of_whole; i += lanes) {
    ElementVector<Formula, T> vector(part, i);
    vector.Update(math, gradient);
    vector.Store(part, i);
  }
  if (rest == 0) return;
  // The last vector overlaps with the one before. Both are read before either is written, and have
  // the same bits where they overlap.
  ElementVector<Formula, T> before(part, end_of_whole);
  ElementVector<Formula, T> last(part, count - lanes);
  before.Update(math, gradient);
  before.Store(part, end_of_whole);
  last.Update(math, gradient);
  last.Store(part, count - lanes);
}

// Is an UpdateLoop.
template <class Formula, typename T>
void UpdateElements(const UpdateRange<T>& range, int64_t begin, int64_t end, const T* grad) {
  if (range.gradient.is_plain()) {
    UpdatePart<Formula>(range, begin, end, grad, PlainGradient());
  } else {
    UpdatePart<Formula>(range, begin, end, grad, Formed<T>{range.gradient});
  }
}

// Returns the loops that an op's file exports. Step is the formula of UpdateLoops::step, if the op
// has one.
template <class Formula, class Step = void>
UpdateLoopSet LoopsOf() {
  UpdateLoopSet loops{.of_float = {.update = UpdateElements<Formula, float>},
                      .of_double = {.update = UpdateElements<Formula, double>}};
  if constexpr (!std::is_void_v<Step>) {
    loops.of_float.step = UpdateElements<Step, float>;
    loops.of_double.step = UpdateElements<Step, double>;
  }
  return loops;
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_OPTIMIZER_KERNELS_UPDATE_LOOPS_INL_H_
