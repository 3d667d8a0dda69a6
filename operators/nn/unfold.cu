// CUDA kernels of unfold and fold; nn/convolution/cuda_columns.cuh has the loops. A sum is made by
// one thread, tap by tap as on the CPU.
#include <algorithm>
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/nn/convolution/cuda_columns.cuh"
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/convolution/unfolding.h"

namespace skiff {
namespace {

// Of an image.
int64_t ColumnElements(const VolumeConvolution& conv) {
  return conv.input.channels * conv.window.taps() * conv.output.points();
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnfolding(PrepareContext& context, const UnfoldingKernel& kernel) {
  const VolumeConvolution conv = kernel.parse(context);
  return MakeRowsKernel([conv, windows = CudaWindows(conv),
                         in = CudaVolumeOf(conv.input, conv.order),
                         part = CudaColumns(conv, conv.output.points(), 0),
                         makes_columns = kernel.result == UnfoldingResult::kColumns,
                         from = In<T>(context, kernel.from),
                         to = Out<T>(context, kernel.to)](const KernelContext& run) {
    const int64_t elements = conv.input.channels * conv.input.points();
    const int64_t columns = ColumnElements(conv);
    ForEachCudaPart(to.shape(run)[0], std::max(elements, columns), [&](int64_t n, int64_t images) {
      if (makes_columns) {
        const int64_t count = images * conv.input.channels * conv.output.points();
        FillColumns<T, false><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
            windows, in, part, from(run) + n * elements, to(run) + n * columns,
            static_cast<uint32_t>(count));
      } else {
        const int64_t count = images * elements;
        CollectColumns<T, false><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
            windows, in, part, from(run) + n * columns, to(run) + n * elements,
            /*adds=*/false, static_cast<uint32_t>(count));
      }
      CheckLaunch("columns of images");
    });
  });
}

template <typename T>
void AddUnfoldingKernelsOf(OpRegistry& registry) {
  for (const UnfoldingKernel& kernel : kUnfoldingKernels) {
    registry.AddCudaKernel(
        kernel.type, kDTypeOf<T>,
        [kernel](PrepareContext& context) { return PrepareUnfolding<T>(context, kernel); },
        [kernel](const OpContext& context) {
          const VolumeConvolution conv = kernel.parse(context);
          return AllPlain(context) && CudaCountsConvolution(conv) &&
                 ColumnElements(conv) <= kMaxCudaElements;
        });
  }
}

}  // namespace

void RegisterUnfoldCuda(OpRegistry& registry) {
  AddUnfoldingKernelsOf<float>(registry);
  AddUnfoldingKernelsOf<double>(registry);
  AddUnfoldingKernelsOf<BFloat16>(registry);
  AddUnfoldingKernelsOf<Float16>(registry);
}

}  // namespace skiff
