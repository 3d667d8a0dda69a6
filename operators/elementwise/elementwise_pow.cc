// elementwise_pow: Out = X^Y. Source: Fluid's elementwise_pow. Integers are raised in float64 and
// rounded; results out of range become the nearest integer.
//
// X@GRAD = Out@GRAD * Y * X^(Y - 1), Y@GRAD = Out@GRAD * ln(X) * X^Y. X@GRAD is 0 for Y = 0, and
// Y@GRAD is 0 for X = 0 with Y >= 0 and for X = inf with Y < 0, as in the limit (at X = Y = 0, as
// in PyTorch); Fluid gives NaN there.
#include <cmath>

#include "operators/common/integer.h"
#include "operators/elementwise/kernels/binary.h"

namespace skiff {
namespace {

struct Pow {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return FromFloat<T>(std::round(std::pow(static_cast<double>(x), static_cast<double>(y))));
    } else {
      return std::pow(x, y);
    }
  }
};

struct PowXGrad {
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    return y == T{0} ? T{0} : dout * y * std::pow(x, y - T{1});
  }
};

struct PowYGrad {
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    // Where the power is 0 or constant, an infinite logarithm doesn't matter.
    const bool is_flat = (x == T{0} && y >= T{0}) || (x - x != T{0} && x > T{0} && y < T{0});
    return is_flat ? T{0} : dout * std::log(x) * std::pow(x, y);
  }
};

}  // namespace

void RegisterElementwisePow(OpRegistry& registry) {
  const BinaryFacts facts = {
      .type = "elementwise_pow",
      .doc = "Out = X^Y.",
      .zero_preserving = false,
      .grad_doc = "X@GRAD = Out@GRAD * Y * X^(Y - 1), Y@GRAD = Out@GRAD * ln(X) * X^Y.",
      .no_gradient_reason = "",
      .grad_reads_x = true,
      .grad_reads_y = true};
  RegisterBinary<Pow, PowXGrad, PowYGrad, int32_t, int64_t>(registry, facts);
}

}  // namespace skiff
