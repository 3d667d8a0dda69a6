// cos: Out = cos X. Source: Fluid's cos.
//
// X@GRAD = -Out@GRAD * sin X.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

struct Cos {
  template <typename T>
  T operator()(T x) const {
    return std::cos(x);
  }
};

struct CosGrad {
  template <typename T>
  T operator()(T x, T dout) const {
    // Not -std::sin: from zeros, that would be -0, and the op must preserve zeros.
    return dout * (T{0} - std::sin(x));
  }
};

}  // namespace

void RegisterCos(OpRegistry& registry) {
  RegisterUnary<Cos, CosGrad>(registry, {.type = "cos",
                                         .doc = "Out = cos(X), X in radians.",
                                         .grad_doc = "X@GRAD = -Out@GRAD * sin(X).",
                                         .grad_reads = "X",
                                         .zero_preserving = false,
                                         .grad_zero_preserving = true});
}

}  // namespace skiff
