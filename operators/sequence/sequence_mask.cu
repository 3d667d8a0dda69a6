// CUDA kernels of sequence_mask for a known maxlen; sequence_mask.cc has the formula. Where the
// shape depends on data, the host must read them.
#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

// `one` has the bits of 1 in the dtype of the mask.
template <typename T, typename Word>
__global__ void __launch_bounds__(kCudaThreads)
    WriteMask(const T* x, int64_t rows, int64_t length, int threads_of_row, Word one, Word* mask) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  ForEachColumn(
      rows, length, threads_of_row, [&](int64_t row) { return static_cast<Wide>(x[row]); },
      [&](int64_t row, int64_t column, Wide ones) {
        mask[row * length + column] = static_cast<Wide>(column) < ones ? one : Word{0};
      });
}

template <typename T, typename Word>
void LaunchMask(const KernelContext& run, const Tensor& x, int64_t length, Word one, Tensor* mask) {
  const int64_t rows = x.element_count();
  if (rows == 0) return;
  const RowThreads threads(rows, length);
  WriteMask<T, Word><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
      x.data<T>(), rows, length, threads.of_row, one, static_cast<Word*>(mask->raw_data()));
  CheckLaunch("sequence_mask");
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceMask(PrepareContext& context) {
  return MakeRowsKernel([length = context.IntAttr("maxlen"), dtype = context.Output("Y").dtype,
                         x = In<>(context, "X"),
                         y = Out<>(context, "Y")](const KernelContext& run) {
    const auto launch = [&](auto one) {
      LaunchMask<T>(run, x.tensor(run), length, one, &y.tensor(run));
    };
    switch (dtype) {
      case DType::kFloat64:
        return launch(std::bit_cast<uint64_t>(1.0));
      case DType::kInt64:
        return launch(uint64_t{1});
      case DType::kFloat32:
        return launch(std::bit_cast<uint32_t>(1.0f));
      case DType::kInt32:
        return launch(uint32_t{1});
      default:  // bool and uint8
        return launch(uint8_t{1});
    }
  });
}

template <typename T>
void AddMaskKernel(OpRegistry& registry) {
  registry.AddCudaKernel(
      "sequence_mask", kDTypeOf<T>, PrepareSequenceMask<T>, [](const OpContext& context) {
        return !context.HasInput("MaxLenTensor") && context.IntAttr("maxlen") >= 0;
      });
}

}  // namespace

void RegisterSequenceMaskCuda(OpRegistry& registry) {
  AddMaskKernel<int32_t>(registry);
  AddMaskKernel<int64_t>(registry);
  AddMaskKernel<float>(registry);
  AddMaskKernel<double>(registry);
}

}  // namespace skiff
