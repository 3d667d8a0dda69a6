// The registration of the CUDA kernels of top_k and top_k_v2, and of their gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/cuda/cuda_selection.cuh"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareCudaTopK(PrepareContext& context, bool is_v2) {
  const int axis =
      AxisIndex(context, context.Input("X").shape, is_v2 ? context.IntAttr("axis") : int64_t{-1});
  const bool largest = !is_v2 || context.Attr<bool>("largest");
  const int64_t k = context.IntAttr("k");
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<int64_t> indices(context, "Indices");
  return MakeRowsKernel([=](const KernelContext& run) {
    SelectOnDevice(run, "top_k", ExtentsOfAxis(x.shape(run), axis),
                   CudaSelection<T>{.x = x(run),
                                    .k = k,
                                    .is_descending = largest,
                                    .nan_is_first = largest,
                                    .values = out(run),
                                    .places = indices(run),
                                    .narrow_places = nullptr});
  });
}

// Sets dx to the gradients at the places of each line, and to 0 elsewhere.
template <typename T>
struct SpreadToPlaces {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!line.exists) return;
    for (int64_t j = group.lane; j < line.length; j += group.size) {
      dx[line.start + j * line.stride] = 0;
    }
    const CudaDivision at = Divide(line.index, line.stride);
    const int64_t first = at.quotient * k * line.stride + at.rest;
    // Each thread writes the places that it has set to 0, in order.
    for (int64_t i = 0; i < k; ++i) {
      const int64_t from = first + i * line.stride;
      const int64_t place = places[from];
      if (place < 0 || place >= line.length) {
        if (group.lane == 0) NoteFault(fault, from, place);
      } else if (place % group.size == group.lane) {
        dx[line.start + place * line.stride] = gradient[from];
      }
    }
  }

  int64_t k;
  const int64_t* places;
  const T* gradient;
  T* dx;
  uint64_t* fault;
};

template <typename T>
class CudaTopKGradKernel final : public Kernel {
 public:
  CudaTopKGradKernel(PrepareContext& context, bool is_v2)
      : type_(context.op().type),
        axis_(AxisIndex(context, context.Input("X").shape,
                        is_v2 ? context.IntAttr("axis") : int64_t{-1})),
        indices_(context, "Indices"),
        gradient_(context, "Out@GRAD"),
        dx_(context, "X@GRAD") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const AxisExtents extents = ExtentsOfAxis(dx_.shape(run), axis_);
    length_ = extents.length;
    ForEachLineOnDevice<T>(run, "top_k_grad", extents,
                           SpreadToPlaces<T>{ExtentsOfAxis(indices_.shape(run), axis_).length,
                                             indices_(run), gradient_(run), dx_(run), run.fault});
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, type_, ": Indices[", fault.position, "] = ", fault.value,
          " is outside [0, ", length_, "), the places along the axis");
  }

 private:
  std::string type_;
  int axis_;
  In<int64_t> indices_;
  In<T> gradient_;
  Out<T> dx_;
  int64_t length_ = 0;  // of the last run's lines
};

template <typename T>
void AddCudaTopKKernel(OpRegistry& registry, std::string_view type, bool is_v2) {
  registry.AddCudaKernel(
      type, kDTypeOf<T>,
      [is_v2](PrepareContext& context) { return PrepareCudaTopK<T>(context, is_v2); },
      // With K, the shape of the outputs depends on data.
      [](const OpContext& context) { return !context.HasInput("K"); });
}

void AddCudaTopKKernels(OpRegistry& registry, bool is_v2) {
  const StaticText type = is_v2 ? "top_k_v2" : "top_k";
  AddCudaTopKKernel<float>(registry, type, is_v2);
  AddCudaTopKKernel<double>(registry, type, is_v2);
  AddCudaTopKKernel<int32_t>(registry, type, is_v2);
  AddCudaTopKKernel<int64_t>(registry, type, is_v2);
  AddCudaKernels<float, double>(
      registry, StrCat(type, "_grad"),
      [is_v2]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaTopKGradKernel<T>>(context, is_v2);
      });
}

}  // namespace
}  // namespace skiff
