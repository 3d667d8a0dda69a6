// sin: Out = sin X. Source: Fluid's sin.
//
// X@GRAD = Out@GRAD * cos X.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

struct Sin {
  template <typename T>
  T operator()(T x) const {
    return std::sin(x);
  }
};

struct SinGrad {
  template <typename T>
  T operator()(T x, T dout) const {
    return dout * std::cos(x);
  }
};

}  // namespace

void RegisterSin(OpRegistry& registry) {
  RegisterUnary<Sin, SinGrad>(registry, {.type = "sin",
                                         .doc = "Out = sin(X), X in radians.",
                                         .grad_doc = "X@GRAD = Out@GRAD * cos(X).",
                                         .grad_reads = "X",
                                         .zero_preserving = true,
                                         .grad_zero_preserving = true});
}

}  // namespace skiff
