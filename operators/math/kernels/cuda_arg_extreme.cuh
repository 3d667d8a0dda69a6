// The registration of the CUDA kernels of arg_max and arg_min.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_selection.cuh"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareCudaArgExtreme(PrepareContext& context, bool is_max) {
  const bool flattens = context.Attr<bool>("flatten");
  const int axis =
      flattens ? 0 : AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  const auto extents_of = [=, type = context.op().type](const Shape& x) {
    const AxisExtents extents =
        flattens ? AxisExtents{.length = x.element_count()} : ExtentsOfAxis(x, axis);
    SKIFF_ENFORCE(extents.length > 0 || extents.lines() == 0, kInvalidArgument, type,
                  ": X of shape ", x, " has no elements along the axis, expected at least one");
    return extents;
  };
  const bool is_narrow = context.IntAttr("dtype") == static_cast<int64_t>(DType::kInt32);
  SKIFF_ENFORCE(!is_narrow || extents_of(context.Input("X").shape).length <= INT32_MAX, kOutOfRange,
                context.op().type, ": more elements along the axis than int32 can count");
  const In<T> x(context, "X");
  const Out<> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    SelectOnDevice(
        run, is_max ? "arg_max" : "arg_min", extents_of(x.shape(run)),
        CudaSelection<T>{.x = x(run),
                         .k = 1,
                         .is_descending = is_max,
                         .nan_is_first = true,
                         .values = nullptr,
                         .places = is_narrow ? nullptr : out.tensor(run).data<int64_t>(),
                         .narrow_places = is_narrow ? out.tensor(run).data<int32_t>() : nullptr});
  });
}

void AddCudaArgExtremeKernels(OpRegistry& registry, std::string_view type, bool is_max) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, type, [is_max]<typename T>(PrepareContext& context) {
        return PrepareCudaArgExtreme<T>(context, is_max);
      });
}

}  // namespace
}  // namespace skiff
