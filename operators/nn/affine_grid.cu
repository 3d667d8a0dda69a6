// CUDA kernels of affine_grid; sampling/affine_map.h has the formula.
//
// A thread maps a place. In the gradient, a block adds up a row of a matrix, always in the same
// order.
#include <cuda_runtime.h>

#include <memory>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/nn/sampling/affine_map.h"

namespace skiff {
namespace {

template <typename T, int kAxes>
struct MapPlace {
  __device__ void operator()(int64_t i) const {
    const CudaDivision by_image = Divide(i, places);
    const auto base = BaseOf<T, kAxes>(map, by_image.rest);
    const T* matrix = theta + by_image.quotient * kAxes * (kAxes + 1);
    for (int row = 0; row < kAxes; ++row)
      output[i * kAxes + row] = MappedTo<T, kAxes>(matrix + row * (kAxes + 1), base);
  }

  AffineMap map;
  int64_t places;  // of an image
  const T* theta;
  T* output;
};

template <typename T, int kAxes>
__global__ void __launch_bounds__(kCudaThreads)
    SumAffineRows(AffineMap map, int64_t places, int64_t rows, const T* gradient, T* dtheta) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    double sums[kAxes + 1] = {};
    const T* given = gradient + row / kAxes * places * kAxes + row % kAxes;
    for (int64_t p = threadIdx.x; p < places; p += kCudaThreads) {
      AddToSums<T, kAxes>(given[p * kAxes], BaseOf<T, kAxes>(map, p), sums);
    }
    for (int k = 0; k <= kAxes; ++k) {
      const double sum = CombineBlock(sums[k], JoinBySum{});
      if (threadIdx.x == 0) dtheta[row * (kAxes + 1) + k] = static_cast<T>(sum);
    }
  }
}

template <typename T, int kAxes>
std::unique_ptr<Kernel> PrepareAffineGrid(PrepareContext& context) {
  return MakeRowsKernel([map = ParseAffineMap(context), theta = In<T>(context, "Theta"),
                         out = Out<T>(context, "Output")](const KernelContext& run) {
    const int64_t places = map.places.points();
    ForEachOnDevice(run, "affine_grid", out.shape(run)[0] * places,
                    MapPlace<T, kAxes>{map, places, theta(run), out(run)});
  });
}

template <typename T, int kAxes>
std::unique_ptr<Kernel> PrepareAffineGridGrad(PrepareContext& context) {
  return MakeRowsKernel([map = ParseAffineMap(context), gradient = In<T>(context, "Output@GRAD"),
                         dtheta = Out<T>(context, "Theta@GRAD")](const KernelContext& run) {
    const int64_t rows = dtheta.shape(run)[0] * kAxes;
    if (rows == 0) return;
    SumAffineRows<T, kAxes><<<CudaBlocks(rows), kCudaThreads, 0, StreamOf(run)>>>(
        map, map.places.points(), rows, gradient(run), dtheta(run));
    CheckLaunch("gradient of affine_grid");
  });
}

}  // namespace

void RegisterAffineGridCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "affine_grid", [=]<typename T>(PrepareContext& context) {
    return context.Input("Theta").shape[1] == 2 ? PrepareAffineGrid<T, 2>(context)
                                                : PrepareAffineGrid<T, 3>(context);
  });
  AddCudaKernels<float, double>(
      registry, "affine_grid_grad", [=]<typename T>(PrepareContext& context) {
        return context.Input("Theta").shape[1] == 2 ? PrepareAffineGridGrad<T, 2>(context)
                                                    : PrepareAffineGridGrad<T, 3>(context);
      });
}

}  // namespace skiff
