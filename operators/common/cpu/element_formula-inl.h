// The float32 loops of the formulas of element_formula.h.
//
// Included once per instruction set, through Highway's foreach_target.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "operators/common/cpu/formula-inl.h"
#include "operators/common/element_formula.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_ELEMENT_FORMULA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_ELEMENT_FORMULA_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_ELEMENT_FORMULA_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_ELEMENT_FORMULA_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the lanes of an input from position i on.
template <class D>
HWY_INLINE Lanes<D> LoadInput(D d, const ElementArrays<float>::Input& input, int64_t i) {
  if (input.data == nullptr) return Lanes<D>(1.0f);
  if (input.step == 0) return Lanes<D>(*input.data);
  return Lanes<D>(hn::LoadU(d, input.data + i));
}

// Applies a formula to the lanes from position i on.
template <class D, class Formula, size_t... k>
HWY_INLINE void ApplyFormulaToLanes(D d, const Formula& formula, const ElementArrays<float>& arrays,
                                    int64_t i, std::index_sequence<k...>) {
  const auto values = formula(LoadInput(d, arrays.inputs[k], i)...);
  for (size_t at = 0; at < values.size(); ++at) {
    if (arrays.outputs[at] != nullptr) hn::StoreU(values[at].v, d, arrays.outputs[at] + i);
  }
}

// Return the loop of a formula. The last elements are vectors of one lane, so a loop touches
// nothing beyond them.
template <class Formula>
ElementLoop<float> VectorLoopOf(const Formula& formula) {
  return [formula](const ElementArrays<float>& arrays, int64_t count) HWY_ATTR {
    constexpr std::make_index_sequence<Formula::kInputs.size()> kInputs;
    // A copy, which no store can change.
    const ElementArrays<float> own = arrays;
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) ApplyFormulaToLanes(d, formula, own, i, kInputs);
    for (; i < count; ++i) ApplyFormulaToLanes(hn::CappedTag<float, 1>(), formula, own, i, kInputs);
  };
}

template <class Formula>
ElementLoop<float> VectorLoopOfFormula(const OpContext& context) {
  return VectorLoopOf(Formula(context));
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_ELEMENT_FORMULA_INL_H_
