// The registration of ops that are products of matrices on a device.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "framework/op/registry.h"
#include "operators/common/half.h"

namespace skiff {

// Adds the kernels of float32 and float64, "cuda", and those of bfloat16 and float16. These are
// called kNativeHalfKernel: for half, the library may choose another algorithm than for float32,
// with another order of additions. `prepare` is that of AddCudaKernels.
template <typename Prepare>
void AddCudaProductKernels(OpRegistry& registry, std::string_view type, const Prepare& prepare) {
  const auto add = [&]<typename T>(StaticText name) {
    KernelDef kernel;
    kernel.name = name;
    kernel.place = PlaceKind::kCuda;
    kernel.dtype = kDTypeOf<T>;
    kernel.prepare = [prepare](PrepareContext& context) {
      return prepare.template operator()<T>(context);
    };
    registry.AddKernel(type, std::move(kernel));
  };
  add.template operator()<float>("cuda");
  add.template operator()<double>("cuda");
  add.template operator()<BFloat16>(kNativeHalfKernel);
  add.template operator()<Float16>(kNativeHalfKernel);
}

}  // namespace skiff
