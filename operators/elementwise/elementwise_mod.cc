// elementwise_mod: Out = X - Y * floor(X / Y), which has the sign of Y. Source: Fluid's
// elementwise_mod. An integer modulo zero is an Error.
#include <cmath>
#include <utility>

#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/integer_division.h"

namespace skiff {
namespace {

struct Mod {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y == static_cast<T>(-1)) return T{0};  // the lowest number % -1 would trap
      const T rest = static_cast<T>(x % y);
      return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
    } else {
      const T rest = std::fmod(x, y);
      // fmod has the sign of x.
      return rest != T{0} && (rest < T{0}) != (y < T{0}) ? rest + y : rest;
    }
  }
};

template <typename T>
void AddIntegerKernel(OpRegistry& registry) {
  AddBinaryKernel<T>(registry, "elementwise_mod", ScalarBinaryLoop<Mod, T>, kScalarGrain,
                     [](const T* y, int64_t count) { CheckDivisors("elementwise_mod", y, count); });
}

}  // namespace

void RegisterElementwiseMod(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_mod",
                             .doc = "Out = X - Y * floor(X / Y), with the sign of Y.",
                             .zero_preserving = false,
                             .grad_doc = "",
                             .no_gradient_reason = "Fluid has none: remainders jump",
                             .checks_y = true};
  AddBinaryOps(registry, facts);
  AddBinaryKernel<float>(registry, facts.type, ScalarBinaryLoop<Mod, float>, kScalarGrain);
  AddBinaryKernel<double>(registry, facts.type, ScalarBinaryLoop<Mod, double>, kScalarGrain);
  AddIntegerKernel<int32_t>(registry);
  AddIntegerKernel<int64_t>(registry);
}

}  // namespace skiff
