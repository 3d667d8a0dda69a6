// CUDA kernels of the gradients of ops that repeat elements: expand, expand_v2, expand_as_v2, tile,
// meshgrid and set_value. The forward kernels of all but the last are in data_movement.cu.
#include <cuda_runtime.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/tensor/kernels/assigned_region.h"

namespace skiff {
namespace {

// The sum of what an element was copied to.
template <typename T>
struct SumOfCopies {
  using Carry = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<Carry>(copies[place]);
  }
  __device__ void Finish(int64_t element, Carry sum) const { sums[element] = static_cast<T>(sum); }

  const T* copies;
  T* sums;
};

// The gradients of one argument.
template <typename T>
struct SumOfGradients {
  void Run(const KernelContext& run, const char* what) const {
    fold.Run(run, what, view, {static_cast<const T*>(from(run)), static_cast<T*>(to(run))});
  }

  CudaFold<SumOfCopies<T>> fold;
  CudaFoldView view;
  In<> from;
  Out<> to;
};

// An axis of Out@GRAD is seen as the axes [times, dim], of which the first is summed. The shapes
// tell `times`, since X is never empty here.
template <typename T>
std::unique_ptr<Kernel> PrepareRepeatGrad(PrepareContext& context) {
  const Shape& x = context.Output("X@GRAD").shape;
  const Shape& out = context.Input("Out@GRAD").shape;
  CudaFoldView view;
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    const int of_x = axis - (out.rank() - x.rank());
    const int64_t dim = of_x < 0 ? 1 : x[of_x];
    view.AddOutside(dim, false);
    view.AddOutside(out[axis] / dim, true);
  }
  const SumOfGradients<T> sum{CudaFold<SumOfCopies<T>>(context, out.element_count()),
                              view,
                              {context, "Out@GRAD"},
                              {context, "X@GRAD"}};
  return MakeKernel([=](const KernelContext& run) { sum.Run(run, "sum of copies"); });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMeshgridGrad(PrepareContext& context) {
  std::vector<SumOfGradients<T>> sums;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const Out<> to(context, "X@GRAD", i);
    if (!to.is_there()) continue;
    const Shape& grid = context.Input("outputs@GRAD", i).shape;
    AxisFlags is_summed{};
    for (size_t axis = 0; axis < is_summed.size(); ++axis) is_summed[axis] = axis != i;
    sums.push_back({CudaFold<SumOfCopies<T>>(context, grid.element_count()),
                    CudaFoldView(grid, is_summed),
                    {context, "outputs@GRAD", i},
                    to});
  }
  return MakeKernel([sums = std::move(sums)](const KernelContext& run) {
    for (const SumOfGradients<T>& sum : sums) sum.Run(run, "meshgrid_grad");
  });
}

// T is a number of set_value_grad; integers are summed as unsigned ones.
template <typename T, typename Sum>
class CudaRegionSums {
 public:
  CudaRegionSums(PrepareContext& context, const Shape& shape, const AxisFlags& is_summed)
      : fold_(context, shape.element_count()), view_(shape, is_summed) {}

  void Run(const KernelContext& run, const T* from, T* to) const {
    fold_.Run(run, "set_value_grad", view_,
              {reinterpret_cast<const Sum*>(from), reinterpret_cast<Sum*>(to)});
  }

 private:
  CudaFold<SumOfCopies<Sum>> fold_;
  CudaFoldView view_;
};

template <typename T, typename Sum>
std::unique_ptr<Kernel> PrepareSetValueGrad(PrepareContext& context) {
  return std::make_unique<RegionGradients<T, CudaRegionSums<T, Sum>>>(context);
}

template <typename T>
void AddRepetitionKernels(OpRegistry& registry, DType dtype) {
  const auto add = [&](const char* type, KernelFactory prepare) {
    registry.AddCudaKernel(type, dtype, std::move(prepare));
  };
  for (const char* type : {"expand_grad", "expand_as_v2_grad", "expand_v2_grad", "tile_grad"}) {
    add(type, PrepareRepeatGrad<T>);
  }
  add("meshgrid_grad", PrepareMeshgridGrad<T>);
}

}  // namespace

void RegisterRepetitionCuda(OpRegistry& registry) {
  AddRepetitionKernels<float>(registry, DType::kFloat32);
  AddRepetitionKernels<double>(registry, DType::kFloat64);
  // Unsigned, so that sums wrap around.
  AddRepetitionKernels<uint32_t>(registry, DType::kInt32);
  AddRepetitionKernels<uint64_t>(registry, DType::kInt64);
  const auto add = [&](DType dtype, KernelFactory prepare) {
    registry.AddCudaKernel("set_value_grad", dtype, std::move(prepare));
  };
  add(DType::kFloat32, PrepareSetValueGrad<float, float>);
  add(DType::kFloat64, PrepareSetValueGrad<double, double>);
  add(DType::kInt32, PrepareSetValueGrad<int32_t, uint32_t>);
  add(DType::kInt64, PrepareSetValueGrad<int64_t, uint64_t>);
}

}  // namespace skiff
