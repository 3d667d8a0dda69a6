// CUDA kernels of where and where_grad. Elements are words of 1, 2, 4 or 8 bytes.
#include <cstdint>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"

namespace skiff {
namespace {

// X or Y of where may be nullptr: zeros.
template <typename Word>
struct Choice {
  const Word* if_true;
  const Word* if_false;
  Word* out;
};

// Each thread reads all of a vector before it writes any of it, so outputs may be inputs.
template <typename Word>
__global__ void __launch_bounds__(kCudaThreads)
    Choose(const uint8_t* condition, Choice<Word> first, Choice<Word> second, int64_t count,
           bool is_aligned) {
  constexpr int kSize = kVectorSize<Word>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const auto holds = LoadVector<kSize>(condition + i, length, is_whole);
    const auto chosen = [&](const Choice<Word>& choice) {
      CudaVector<Word, kSize> yes{};
      CudaVector<Word, kSize> no{};
      if (choice.out == nullptr) return yes;
      if (choice.if_true != nullptr) yes = LoadVector<kSize>(choice.if_true + i, length, is_whole);
      if (choice.if_false != nullptr) no = LoadVector<kSize>(choice.if_false + i, length, is_whole);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        if (holds.values[j] == 0) yes.values[j] = no.values[j];
      }
      return yes;
    };
    const CudaVector<Word, kSize> of_first = chosen(first);
    const CudaVector<Word, kSize> of_second = chosen(second);
    if (first.out != nullptr) StoreVector(of_first, length, is_whole, first.out + i);
    if (second.out != nullptr) StoreVector(of_second, length, is_whole, second.out + i);
  });
}

template <typename Word>
bool IsAligned(const Choice<Word>& choice) {
  return IsAlignedTo(choice.if_true, 16) && IsAlignedTo(choice.if_false, 16) &&
         IsAlignedTo(choice.out, 16);
}

template <typename Word>
void LaunchChoose(const KernelContext& run, const Tensor& condition, const Choice<Word>& first,
                  const Choice<Word>& second) {
  const int64_t count = condition.element_count();
  if (count == 0) return;
  const auto* holds = static_cast<const uint8_t*>(condition.raw_data());
  const CudaGrid grid = GridOfVectors(run, count, sizeof(Word));
  Choose<Word><<<grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
      holds, first, second, count, IsAlignedTo(holds, 16) && IsAligned(first) && IsAligned(second));
  const char* failure = LaunchFailure();
  SKIFF_ENFORCE(failure == nullptr, kIo, "where: launch failed: ", failure);
}

template <typename Word>
std::unique_ptr<Kernel> PrepareWhere(PrepareContext& context) {
  const In<> condition(context, "Condition");
  const In<> x(context, "X");
  const In<> y(context, "Y");
  const Out<> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    LaunchChoose<Word>(run, condition.tensor(run),
                       {.if_true = static_cast<const Word*>(x(run)),
                        .if_false = static_cast<const Word*>(y(run)),
                        .out = static_cast<Word*>(out(run))},
                       {});
  });
}

template <typename Word>
std::unique_ptr<Kernel> PrepareWhereGrad(PrepareContext& context) {
  const In<> condition(context, "Condition");
  const In<> dout(context, "Out@GRAD");
  const Out<> dx(context, "X@GRAD");
  const Out<> dy(context, "Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto* from = static_cast<const Word*>(dout(run));
    LaunchChoose<Word>(run, condition.tensor(run),
                       {.if_true = from, .if_false = nullptr, .out = static_cast<Word*>(dx(run))},
                       {.if_true = nullptr, .if_false = from, .out = static_cast<Word*>(dy(run))});
  });
}

}  // namespace

void RegisterWhereCuda(OpRegistry& registry) {
  registry.AddCudaKernel("where", DType::kBool, PrepareWhere<uint8_t>);
  registry.AddCudaKernel("where", DType::kInt32, PrepareWhere<uint32_t>);
  registry.AddCudaKernel("where", DType::kFloat16, PrepareWhere<uint16_t>);
  registry.AddCudaKernel("where", DType::kBFloat16, PrepareWhere<uint16_t>);
  registry.AddCudaKernel("where", DType::kFloat32, PrepareWhere<uint32_t>);
  registry.AddCudaKernel("where", DType::kInt64, PrepareWhere<uint64_t>);
  registry.AddCudaKernel("where", DType::kFloat64, PrepareWhere<uint64_t>);
  registry.AddCudaKernel("where_grad", DType::kFloat16, PrepareWhereGrad<uint16_t>);
  registry.AddCudaKernel("where_grad", DType::kBFloat16, PrepareWhereGrad<uint16_t>);
  registry.AddCudaKernel("where_grad", DType::kFloat32, PrepareWhereGrad<uint32_t>);
  registry.AddCudaKernel("where_grad", DType::kFloat64, PrepareWhereGrad<uint64_t>);
}

}  // namespace skiff
