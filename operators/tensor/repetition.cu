// CUDA kernels of the gradients of ops that repeat elements: expand, expand_v2, tile and meshgrid.
// Their forward kernels are in data_movement.cu.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/tensor/kernels/cuda_axis_sum.cuh"

namespace skiff {
namespace {

// An axis of Out@GRAD is seen as the axes [times, dim], of which the first is summed. The shapes
// tell `times`, since X is never empty here.
template <typename T>
std::unique_ptr<Kernel> PrepareRepeatGrad(PrepareContext& context) {
  const Shape& x = context.Output("X@GRAD").shape;
  const Shape& out = context.Input("Out@GRAD").shape;
  std::vector<int64_t> dims;
  std::vector<bool> is_summed;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const int of_x = axis - (out.rank() - x.rank());
    const int64_t dim = of_x < 0 ? 1 : x[of_x];
    dims.insert(dims.end(), {out[axis] / dim, dim});
    is_summed.insert(is_summed.end(), {true, false});
  }
  return MakeKernel([sum = CudaAxisSum<T>(context, dims, is_summed),
                     from = context.InputIndex("Out@GRAD"),
                     to = context.OutputIndex("X@GRAD")](const KernelContext& run) {
    sum.Run(run, run.input(from).raw_data(), run.output(to).raw_data());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMeshgridGrad(PrepareContext& context) {
  struct Part {
    CudaAxisSum<T> sum;
    int from;
    int to;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const int to = context.OutputIndex("X@GRAD", i);
    if (to < 0) continue;
    const Shape& grid = context.Input("outputs@GRAD", i).shape;
    std::vector<bool> is_summed(static_cast<size_t>(grid.rank()), true);
    is_summed[i] = false;
    parts.push_back({CudaAxisSum<T>(context, {grid.begin(), grid.end()}, is_summed),
                     context.InputIndex("outputs@GRAD", i), to});
  }
  return MakeKernel([parts = std::move(parts)](const KernelContext& run) {
    for (const Part& part : parts) {
      part.sum.Run(run, run.input(part.from).raw_data(), run.output(part.to).raw_data());
    }
  });
}

template <typename T>
void AddKernels(OpRegistry& registry, DType dtype) {
  const auto add = [&](const char* type, KernelFactory prepare) {
    registry.AddKernel(type, {.name = "cuda",
                              .place = PlaceKind::kCuda,
                              .dtype = dtype,
                              .prepare = std::move(prepare),
                              .accepts = {}});
  };
  for (const char* type : {"expand_grad", "expand_v2_grad", "tile_grad"}) {
    add(type, PrepareRepeatGrad<T>);
  }
  add("meshgrid_grad", PrepareMeshgridGrad<T>);
}

}  // namespace

void RegisterRepetitionCuda(OpRegistry& registry) {
  AddKernels<float>(registry, DType::kFloat32);
  AddKernels<double>(registry, DType::kFloat64);
  // Unsigned, so that sums wrap around.
  AddKernels<uint32_t>(registry, DType::kInt32);
  AddKernels<uint64_t>(registry, DType::kInt64);
}

}  // namespace skiff
