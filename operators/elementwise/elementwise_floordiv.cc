// elementwise_floordiv: Out = the largest integer that is not greater than X / Y. Source: Fluid's
// elementwise_floordiv. An integer division by zero is an Error.
#include <cmath>
#include <type_traits>

#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/integer_division.h"

namespace skiff {
namespace {

struct FloorDiv {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = WrappingDivide(x, y);
      if (y == static_cast<T>(-1)) return quotient;  // the lowest number % -1 would trap
      const T rest = static_cast<T>(x % y);
      return rest != 0 && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
    } else {
      if (y == T{0}) return x / y;
      // Divides x less its remainder, not x: 1 / 0.1f rounds to 10, but the answer is 9.
      const T rest = std::fmod(x, y);
      const T quotient = std::round((x - rest) / y);
      return rest != T{0} && (rest < T{0}) != (y < T{0}) ? quotient - T{1} : quotient;
    }
  }
};

template <typename T>
void AddIntegerKernel(OpRegistry& registry) {
  AddBinaryKernel<T>(
      registry, "elementwise_floordiv", ScalarBinaryLoop<FloorDiv, T>, kScalarGrain,
      [](const T* y, int64_t count) { CheckDivisors("elementwise_floordiv", y, count); });
}

}  // namespace

void RegisterElementwiseFloordiv(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_floordiv",
                             .doc = "Out = the largest integer that is not greater than X / Y.",
                             .zero_preserving = false,
                             .grad_doc = "",
                             .no_gradient_reason = "Fluid has none: it is a step function",
                             .checks_y = true};
  AddBinaryOps(registry, facts);
  AddBinaryKernel<float>(registry, facts.type, ScalarBinaryLoop<FloorDiv, float>, kScalarGrain);
  AddBinaryKernel<double>(registry, facts.type, ScalarBinaryLoop<FloorDiv, double>, kScalarGrain);
  AddIntegerKernel<int32_t>(registry);
  AddIntegerKernel<int64_t>(registry);
}

}  // namespace skiff
