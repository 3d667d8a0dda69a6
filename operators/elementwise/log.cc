// log: Out = ln X; -inf at 0, NaN below. Source: Fluid's log.
//
// X@GRAD = Out@GRAD / X.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/log.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Log {
  template <class D, class V>
  V operator()(D d, V x) const {
    return LogOf(d, x);
  }
  template <typename T>
  T operator()(T x) const {
    return std::log(x);
  }
};

struct LogGrad {
  template <class D, class V>
  V operator()(D, V x, V dout) const {
    return hn::Div(dout, x);
  }
  template <typename T>
  T operator()(T x, T dout) const {
    return dout / x;
  }
};

UnaryFloatLoops LogLoops(const OpContext& context) { return UnaryLoops<Log, LogGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(LogLoops);

void RegisterLog(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Log, HWY_NAMESPACE::LogGrad>(
      registry,
      {.type = "log",
       .doc = "Out = ln X.",
       .grad_doc = "X@GRAD = Out@GRAD / X.",
       .grad_reads = "X",
       .zero_preserving = false,
       .grad_zero_preserving = false},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(LogLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
