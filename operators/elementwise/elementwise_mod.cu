// CUDA kernels of elementwise_mod; elementwise_mod.cc has the formula.
#include <cmath>
#include <type_traits>

#include "operators/elementwise/kernels/cuda_binary.cuh"
#include "operators/elementwise/kernels/cuda_division.cuh"

namespace skiff {
namespace {

struct Mod {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y == T{-1}) return T{0};  // the lowest number % -1 would overflow
      const T rest = x % y;
      return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
      const T rest = std::fmod(x, y);
      // fmod has the sign of x.
      return rest != T{0} && (rest < T{0}) != (y < T{0}) ? rest + y : rest;
    }
  }
};

}  // namespace

void RegisterElementwiseModCuda(OpRegistry& registry) {
  AddCudaFloatBinary<Mod>(registry, "elementwise_mod");
  AddCudaIntegerDivision<Mod>(registry, "elementwise_mod");
}

}  // namespace skiff
