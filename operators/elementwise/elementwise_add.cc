// elementwise_add: Out = X + Y. Source: Fluid's elementwise_add. Integers wrap around.
//
// X@GRAD = Y@GRAD = Out@GRAD.
#include "operators/common/integer.h"
#include "operators/elementwise/kernels/binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_add.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return WrappingAdd(x, y);
  }
};

BinaryFloatLoops AddLoops() { return BinaryLoops<Add, PassGradient, PassGradient>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(AddLoops);

void RegisterElementwiseAdd(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_add",
                             .doc = "Out = X + Y.",
                             .zero_preserving = true,
                             .grad_doc = "X@GRAD = Y@GRAD = Out@GRAD.",
                             .no_gradient_reason = "",
                             .grad_zero_preserving = true};
  RegisterBinary<HWY_NAMESPACE::Add, PassGradient, PassGradient, int32_t, int64_t>(
      registry, facts, [] { return HWY_DYNAMIC_DISPATCH(AddLoops)(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
