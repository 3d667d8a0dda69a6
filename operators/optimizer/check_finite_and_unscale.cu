// CUDA kernels of check_finite_and_unscale; check_finite_and_unscale.cc has the formula.
//
// A run is two launches for any number of tensors: the first unscales them and notes by block
// whether a result isn't finite, the second joins the notes. The device reads Scale, so the CPU
// waits for nothing. An element is rounded as on the CPU.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {
namespace {

// One tensor, in the table.
struct UnscaledArray {
  friend bool operator==(const UnscaledArray&, const UnscaledArray&) = default;

  const void* x = nullptr;
  void* out = nullptr;
  int64_t count = 0;
  const int64_t* rows = nullptr;  // of selected rows
  int64_t width = 0;              // of a row
  DType dtype = DType::kFloat32;
  bool is_aligned = false;  // both: see cuda_chunks.cuh
};

struct JoinFound {
  __device__ int operator()(int a, int b) const { return a | b; }
};

// The values of an unused row mean nothing: they may be NaN.
__device__ inline bool IsUnscaledInUse(const UnscaledArray& array, int64_t i) {
  return array.rows == nullptr || array.rows[Divide(i, array.width).quotient] >= 0;
}

// Multiplies the pack at element `at` by the factor, and rounds. Returns whether one of its first
// `count` results isn't finite.
template <typename T, class Round>
__device__ bool UnscalePack(const UnscaledArray& array, int64_t at, int count, T factor,
                            const Round& round, Pack<T>* pack) {
  bool found = false;
#pragma unroll
  for (int j = 0; j < kPackSize<T>; ++j) {
    const T value = round(pack->values[j] * factor);
    pack->values[j] = value;
    // 0 for a finite number, and NaN for an infinity or NaN.
    const bool is_finite = value - value == T{0};
    if (j < count && !is_finite && IsUnscaledInUse(array, at + j)) found = true;
  }
  return found;
}

// Return whether a result of the thread isn't finite.
template <typename T>
__device__ bool UnscaleChunk(const UnscaledArray& array, const CudaChunk& chunk, T factor) {
  const T* x = static_cast<const T*>(array.x);
  T* out = static_cast<T*>(array.out);
  bool found = false;
  ForEachPack<T>(chunk, array.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
    Pack<T> pack = LoadPack<kIsWhole>(x + at, count);
    const auto keep = [](T value) { return value; };
    if (UnscalePack(array, at, count, factor, keep, &pack)) found = true;
    StorePack<kIsWhole>(pack, count, out + at);
  });
  return found;
}

__device__ inline bool UnscaleHalfChunk(const UnscaledArray& array, const CudaChunk& chunk,
                                        float factor) {
  const bool is_float16 = array.dtype == DType::kFloat16;
  const auto* x = static_cast<const uint16_t*>(array.x);
  auto* out = static_cast<uint16_t*>(array.out);
  bool found = false;
  ForEachPack<float>(chunk, array.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
    Pack<float> pack = LoadHalves<kIsWhole>(x + at, is_float16, count);
    // A float may be finite where the half isn't.
    const auto round = [=](float value) {
      return FloatOfHalf(HalfOfFloat(value, is_float16), is_float16);
    };
    if (UnscalePack(array, at, count, factor, round, &pack)) found = true;
    StoreHalves<kIsWhole>(pack, is_float16, count, out + at);
  });
  return found;
}

// T: the type of Scale.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    UnscaleArrays(const UnscaledArray* arrays, CudaChunks chunks, const T* scale,
                  bool* found_of_blocks) {
  const float factor = 1.0f / static_cast<float>(*scale);
  const double wide_factor = 1.0 / static_cast<double>(*scale);
  int found = 0;
  for (int64_t i = blockIdx.x; i < chunks.count; i += gridDim.x) {
    const CudaChunk chunk = ChunkOf(chunks, i, [=](int64_t array) { return arrays[array].count; });
    const UnscaledArray array = arrays[chunk.array];
    if (array.dtype == DType::kFloat64) {
      found |= UnscaleChunk(array, chunk, wide_factor);
    } else if (array.dtype == DType::kFloat32) {
      found |= UnscaleChunk(array, chunk, factor);
    } else {
      found |= UnscaleHalfChunk(array, chunk, factor);
    }
  }
  found = CombineBlock(found, JoinFound{});
  if (threadIdx.x == 0) found_of_blocks[blockIdx.x] = found != 0;
}

// Runs in one block.
__global__ void __launch_bounds__(kCudaThreads)
    JoinFoundInfinite(const bool* found_of_blocks, int blocks, bool* found_infinite) {
  int found = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kCudaThreads) {
    found |= found_of_blocks[i] ? 1 : 0;
  }
  found = CombineBlock(found, JoinFound{});
  if (threadIdx.x == 0) *found_infinite = found != 0;
}

template <typename T>
class CheckFiniteAndUnscaleOnDevice final : public Kernel {
 public:
  explicit CheckFiniteAndUnscaleOnDevice(PrepareContext& context)
      : pairs_(PairsOf(context, "X", "Out")),
        scale_(context, "Scale"),
        found_infinite_(context, "FoundInfinite"),
        arrays_(pairs_.size()),
        first_chunks_(FirstChunks(ElementCounts(context, "X"))),
        array_table_(context.place(), arrays_.size()),
        chunk_table_(context.place(), first_chunks_.size()),
        found_of_blocks_(context.RequestWorkspace(CudaBlocks(first_chunks_.back()))) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const cudaStream_t stream = StreamOf(run);
    auto* const found_of_blocks = static_cast<bool*>(run.workspace(found_of_blocks_));
    const int blocks = CudaBlocks(first_chunks_.back());
    if (blocks > 0) {
      Locate(run);
      const UnscaledArray* arrays = array_table_.Store(arrays_, stream);
      const CudaChunks chunks{.first = chunk_table_.Store(first_chunks_, stream),
                              .array_count = static_cast<int64_t>(arrays_.size()),
                              .count = first_chunks_.back()};
      UnscaleArrays<<<blocks, kCudaThreads, 0, stream>>>(arrays, chunks, scale_(run),
                                                         found_of_blocks);
    }
    JoinFoundInfinite<<<1, kCudaThreads, 0, stream>>>(found_of_blocks, blocks,
                                                      found_infinite_(run));
    CheckLaunch("check_finite_and_unscale");
    for (const UpdateArguments::Pair& pair : pairs_) {
      const Tensor& x = run.input(pair.in);
      if (x.is_selected_rows()) CopyRowNumbersOnDevice(run, x, &run.output(pair.out));
    }
  }

 private:
  void Locate(const KernelContext& run) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Tensor& x = run.input(pairs_[i].in);
      UnscaledArray& array = arrays_[i];
      array = {.x = x.raw_data(),
               .out = run.output(pairs_[i].out).raw_data(),
               .count = x.element_count(),
               .dtype = x.dtype()};
      array.is_aligned = IsHalf(array.dtype)
                             ? IsHalfPackAligned(array.x) && IsHalfPackAligned(array.out)
                             : IsPackAligned(array.x) && IsPackAligned(array.out);
      if (!x.is_selected_rows()) continue;
      array.rows = x.rows().data();
      array.width = RowWidth(x.shape());
    }
  }

  std::vector<UpdateArguments::Pair> pairs_;
  In<T> scale_;
  Out<bool> found_infinite_;
  std::vector<UnscaledArray> arrays_;
  std::vector<int64_t> first_chunks_;
  CudaTable<UnscaledArray> array_table_;
  CudaTable<int64_t> chunk_table_;
  int found_of_blocks_;
};

}  // namespace

void RegisterCheckFiniteAndUnscaleCuda(OpRegistry& registry) {
  const auto prepare = [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<CheckFiniteAndUnscaleOnDevice<T>>(context);
  };
  AddCudaKernels<float, double>(registry, "check_finite_and_unscale", prepare);
  registry.AddSelectedRowsKernels<float, double>("check_finite_and_unscale", prepare,
                                                 PlaceKind::kCuda);
}

}  // namespace skiff
