// The squared L2 norm of tensors on CUDA. Among tensors of float32, some may be float16 or
// bfloat16. There are three launches for any number of dense tensors (two for a single tensor):
// they compute the sums of chunks, the sums of tensors, rounded to the dtype, and the total in the
// order of the tensors. No order of additions depends on addresses or on the number of blocks.
//
// Selected rows count as the dense tensor that they represent: their repeated rows are added up in
// a workspace first, which is zero elsewhere, by some launches for each of them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/extreme_square.h"
#include "operators/common/wide_float32.h"

namespace skiff {

template <typename T>
struct CudaArray {
  friend bool operator==(const CudaArray&, const CudaArray&) = default;

  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
};

namespace {

// Adds in Sum.
template <typename Sum, typename T>
__device__ void AddSquares(const Pack<T>& pack, Sum* sum) {
#pragma unroll
  for (int j = 0; j < kPackSize<T>; ++j) {
    *sum += static_cast<Sum>(pack.values[j]) * static_cast<Sum>(pack.values[j]);
  }
}

template <typename Sum, typename T>
__device__ double SquaresIn(const CudaArray<T>& array, const CudaChunk& chunk) {
  Sum sum = 0;
  const auto address = reinterpret_cast<uintptr_t>(array.data);
  if constexpr (std::is_same_v<T, float>) {
    if (array.dtype != DType::kFloat32) {
      const bool is_float16 = array.dtype == DType::kFloat16;
      const auto* halves = static_cast<const uint16_t*>(array.data);
      ForEachPack<T>(chunk, address % 8 == 0, [&]<bool kIsWhole>(int64_t at, int count) {
        AddSquares(LoadHalves<kIsWhole>(halves + at, is_float16, count), &sum);
      });
      return static_cast<double>(sum);
    }
  }
  const T* x = static_cast<const T*>(array.data);
  ForEachPack<T>(chunk, address % sizeof(Pack<T>) == 0, [&]<bool kIsWhole>(int64_t at, int count) {
    AddSquares(LoadPack<kIsWhole>(x + at, count), &sum);
  });
  return static_cast<double>(sum);
}

// Returns the sum over the thread's share of the chunk: in T, or in float64 where T may lose it.
template <typename T>
__device__ double SquaresOfThread(const CudaArray<T>& array, const CudaChunk& chunk) {
  const double sum = SquaresIn<T>(array, chunk);
  if constexpr (std::is_same_v<T, float>) {
    if (IsExtremeSquare(sum)) return SquaresIn<double>(array, chunk);
  }
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SumChunks(const CudaArray<T>* arrays, CudaChunks chunks, double* sums) {
  for (int64_t i = blockIdx.x; i < chunks.count; i += gridDim.x) {
    const CudaChunk chunk = ChunkOf(chunks, i, [=](int64_t array) { return arrays[array].count; });
    const double sum = CombineBlock(SquaresOfThread(arrays[chunk.array], chunk), JoinBySum{});
    if (threadIdx.x == 0) sums[i] = sum;
  }
}

// Rounds a sum to the type in which it is stored, or to float32, if it is wide (wide_float32.h).
template <typename Sum>
__device__ Sum RoundedSum(double sum, bool is_wide) {
  return static_cast<Sum>(is_wide ? NearestFloat32(sum) : sum);
}

// A block takes an array.
template <typename Sum>
__global__ void __launch_bounds__(kCudaThreads)
    SumArrays(const double* of_chunks, CudaChunks chunks, bool is_wide, Sum* sums) {
  for (int64_t i = blockIdx.x; i < chunks.array_count; i += gridDim.x) {
    double sum = 0;
    const int64_t end = chunks.first[i + 1];
    for (int64_t chunk = chunks.first[i] + threadIdx.x; chunk < end; chunk += kCudaThreads) {
      sum += of_chunks[chunk];
    }
    sum = CombineBlock(sum, JoinBySum{});
    if (threadIdx.x == 0) sums[i] = RoundedSum<Sum>(sum, is_wide);
  }
}

// Runs in one block: all threads fetch, and one adds in order.
template <typename Sum>
__global__ void __launch_bounds__(kCudaThreads)
    AddInOrder(const Sum* x, int64_t count, bool is_wide, Sum* out) {
  __shared__ Sum fetched[kCudaThreads];
  Sum total = 0;
  for (int64_t begin = 0; begin < count; begin += kCudaThreads) {
    if (begin + threadIdx.x < count) fetched[threadIdx.x] = x[begin + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int64_t i = 0; i < kCudaThreads && begin + i < count; ++i) {
        total = RoundedSum<Sum>(total + fetched[i], is_wide);
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = total;
}

// The sums of the squares of arrays, of which the factory knows the largest sizes. T is the dtype
// of the elements.
template <typename T>
class CudaSquareSums {
 public:
  CudaSquareSums(PrepareContext& context, const std::vector<int64_t>& counts)
      : first_chunks_(FirstChunks(counts)),
        array_table_(context.place(), counts.size()),
        chunk_table_(context.place(), first_chunks_.size()),
        chunk_sums_(
            context.RequestWorkspace(first_chunks_.back() * static_cast<int64_t>(sizeof(double)))) {
    arrays_.resize(counts.size());
  }

  int64_t array_count() const { return static_cast<int64_t>(arrays_.size()); }

  // Tells of a run where array i is, and how long. The dtype is T's or, if T is float, one of two
  // bytes.
  void Locate(size_t i, const void* data, DType dtype, int64_t count) {
    arrays_[i] = {.data = data, .dtype = dtype, .count = count};
  }

  // Issues two launches that set sums[i], rounded to Sum (or wide), for all arrays.
  template <typename Sum>
  void Run(const KernelContext& run, bool is_wide, Sum* sums) {
    const cudaStream_t stream = StreamOf(run);
    const CudaArray<T>* arrays = array_table_.Store(arrays_, stream);
    const CudaChunks chunks{.first = chunk_table_.Store(first_chunks_, stream),
                            .array_count = array_count(),
                            .count = first_chunks_.back()};
    auto* chunk_sums = static_cast<double*>(run.workspace(chunk_sums_));
    if (chunks.count > 0) {
      SumChunks<<<CudaBlocks(chunks.count), kCudaThreads, 0, stream>>>(arrays, chunks, chunk_sums);
    }
    SumArrays<<<CudaBlocks(chunks.array_count), kCudaThreads, 0, stream>>>(chunk_sums, chunks,
                                                                           is_wide, sums);
    CheckLaunch("sum of squares");
  }

 private:
  std::vector<CudaArray<T>> arrays_;
  std::vector<int64_t> first_chunks_;
  CudaTable<CudaArray<T>> array_table_;
  CudaTable<int64_t> chunk_table_;
  int chunk_sums_;
};

// The values of selected rows without repetitions: [slots, width], each row at its first slot,
// zeros in the other slots.
template <typename T>
class CudaDistinctRows {
 public:
  CudaDistinctRows(PrepareContext& context, const TensorMeta& x)
      : merged_(context, x),
        values_(
            context.RequestWorkspace(x.shape.element_count() * static_cast<int64_t>(sizeof(T)))) {}

  // Returns as many elements as `x` has.
  const T* Make(const KernelContext& run, const Tensor& x) const {
    auto* const values = static_cast<T*>(run.workspace(values_));
    FillBytesOnDevice(run, values, 0, x.element_count() * static_cast<int64_t>(sizeof(T)));
    merged_.SetAtFirst(run, merged_.Sort(run, x), RowWidth(x.shape()), x.data<T>(), values);
    return values;
  }

 private:
  CudaMergedRows<T> merged_;
  int values_;
};

// Computes Out from all X.
template <typename T>
class CudaSquaredNormKernel final : public Kernel {
 public:
  explicit CudaSquaredNormKernel(PrepareContext& context)
      : out_(context, "Out"),
        is_wide_(IsWideFloat32(context)),
        squares_(context, CountsOf(context)),
        array_sums_(context.RequestWorkspace(squares_.array_count() *
                                             SizeOf(context.Output("Out").dtype))) {
    for (size_t i = 0; i < context.inputs().size(); ++i) {
      const TensorMeta& x = context.inputs()[i];
      if (x.is_selected_rows()) sparse_.emplace_back(i, CudaDistinctRows<T>(context, x));
    }
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    for (int64_t i = 0; i < squares_.array_count(); ++i) {
      const Tensor& x = run.input(static_cast<int>(i));
      squares_.Locate(static_cast<size_t>(i), x.raw_data(), x.dtype(), x.element_count());
    }
    for (const auto& [i, distinct] : sparse_) {
      const Tensor& x = run.input(static_cast<int>(i));
      squares_.Locate(i, distinct.Make(run, x), x.dtype(), x.element_count());
    }
    if (is_wide_) {
      AddUp<double>(run);
    } else {
      AddUp<T>(run);
    }
  }

 private:
  // Sum: the type of Out.
  template <typename Sum>
  void AddUp(const KernelContext& run) {
    Sum* out = out_.template as<Sum>(run);
    Sum* sums = squares_.array_count() == 1 ? out : static_cast<Sum*>(run.workspace(array_sums_));
    squares_.Run(run, is_wide_, sums);
    if (sums == out) return;
    AddInOrder<<<1, kCudaThreads, 0, StreamOf(run)>>>(sums, squares_.array_count(), is_wide_, out);
    CheckLaunch("squared norm");
  }

  static std::vector<int64_t> CountsOf(const OpContext& context) {
    std::vector<int64_t> counts;
    for (const TensorMeta& x : context.inputs()) counts.push_back(x.shape.element_count());
    return counts;
  }

  Out<> out_;
  bool is_wide_;
  CudaSquareSums<T> squares_;
  int array_sums_;
  std::vector<std::pair<size_t, CudaDistinctRows<T>>> sparse_;  // with the indices of their X
};

// Adds the kernels of float32 and float64, of dense tensors and of selected rows.
inline void AddCudaSquaredNormKernels(OpRegistry& registry, const char* type) {
  // The dtype may be that of a wide Out.
  const auto prepare = [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    if (IsWideFloat32(context)) return std::make_unique<CudaSquaredNormKernel<float>>(context);
    return std::make_unique<CudaSquaredNormKernel<T>>(context);
  };
  AddCudaKernels<float, double>(registry, type, prepare);
  registry.AddSelectedRowsKernels<float, double>(type, prepare, PlaceKind::kCuda);
}

}  // namespace
}  // namespace skiff
