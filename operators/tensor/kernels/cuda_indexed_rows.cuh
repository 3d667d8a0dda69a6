// What CUDA kernels of ops that read, overwrite and add rows by index have in common: indices that
// a kernel may refuse, the last of several positions that name a row, and registration.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/half.h"

namespace skiff {
namespace {

constexpr int64_t kNoPadding = -1;

// The indices of a run. An index of no row is refused, unless it is padding_id.
struct RowIndices {
  const void* data;
  bool are_wide;  // int64_t, else int32_t
  int64_t length;
  int64_t padding_id;
  uint64_t* fault;

  __device__ int64_t At(int64_t i) const {
    return are_wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
  __device__ bool IsPadding(int64_t index) const {
    return padding_id != kNoPadding && index == padding_id;
  }
  __device__ bool IsRow(int64_t index) const { return index >= 0 && index < length; }
  __device__ void NoteIfRefused(int64_t i, int64_t index) const {
    if (!IsRow(index) && !IsPadding(index)) NoteFault(fault, i, index);
  }
};

RowIndices IndicesOf(const KernelContext& run, const In<>& input, int64_t length,
                     int64_t padding_id = kNoPadding) {
  const Tensor& indices = input.tensor(run);
  return {indices.raw_data(), indices.dtype() == DType::kInt64, length, padding_id, run.fault};
}

// A kernel that refuses indices. `Function` takes the run and returns the number of rows.
template <typename Function>
class IndexKernel final : public Kernel {
 public:
  IndexKernel(std::string op, std::string slot, bool accepts_fewer_rows, Function function)
      : op_(std::move(op)),
        slot_(std::move(slot)),
        accepts_fewer_rows_(accepts_fewer_rows),
        function_(std::move(function)) {}

  void Run(const KernelContext& run) override { length_ = function_(run); }
  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, op_, ": ", slot_, "[", fault.position, "] = ", fault.value,
          " is outside [0, ", length_, ")");
  }
  bool AcceptsFewerRows() const override { return accepts_fewer_rows_; }

 private:
  std::string op_;
  std::string slot_;
  bool accepts_fewer_rows_;
  Function function_;
  int64_t length_ = 0;
};

template <typename Function>
std::unique_ptr<Kernel> MakeIndexKernel(const OpContext& context, std::string slot,
                                        bool accepts_fewer_rows, Function function) {
  return std::make_unique<IndexKernel<Function>>(context.op().type, std::move(slot),
                                                 accepts_fewer_rows, std::move(function));
}

// What becomes of rows that several positions name.
enum class LastRow {
  kOverwrites,  // target[row] = source[its last position]
  kIsRead,      // target[position] = source[row] if it is the row's last, else zeros
  kIsZeroed,    // target[row] = 0
};

// Rows are `inner` words; there is one outer index.
template <typename Word, LastRow kUse>
__global__ void MoveLastRows(SortedRows sorted, int64_t inner, WideDivisor inner_divisor,
                             const Word* source, Word* target) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t words = sorted.count * inner;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
    auto rest = static_cast<uint64_t>(i);
    const auto column = static_cast<int64_t>(inner_divisor.TakeRemainder(&rest));
    const auto k = static_cast<int64_t>(rest);
    const uint32_t row = sorted.rows[k];
    const bool is_row = row < sorted.length;
    const bool is_last = is_row && (k + 1 == sorted.count || sorted.rows[k + 1] != row);
    const int64_t in_rows = row * inner + column;
    const int64_t in_positions = sorted.positions[k] * inner + column;
    if constexpr (kUse == LastRow::kIsRead) {
      target[in_positions] = is_last ? source[in_rows] : Word{};
    } else if (is_last) {
      target[in_rows] = kUse == LastRow::kIsZeroed ? Word{} : source[in_positions];
    }
  }
}

template <LastRow kUse>
void LaunchLastRows(const KernelContext& run, const SortedRows& sorted, int64_t row_bytes,
                    const void* source, void* target) {
  const int64_t word_bytes = WordBytes({row_bytes, AddressOf(source), AddressOf(target)});
  const int64_t inner = row_bytes / word_bytes;
  const int64_t words = sorted.count * inner;
  if (words == 0) return;
  VisitWord(word_bytes, [&]<typename Word>() {
    MoveLastRows<Word, kUse><<<CudaBlocksOfThreads(words), kCudaThreads, 0, StreamOf(run)>>>(
        sorted, inner, WideDivisor(inner), static_cast<const Word*>(source),
        static_cast<Word*>(target));
  });
  CheckLaunch("last rows");
}

// Adds a kernel that only moves elements for each dtype with a CPU kernel.
void AddMovingKernels(OpRegistry& registry, std::string_view type, const KernelFactory& prepare) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    registry.AddCudaKernel(type, dtype, prepare);
  }
}

// Calls add.template operator()<T>(dtype) for the dtypes of sums. Integers are added as unsigned
// numbers, which wrap around.
template <typename Add>
void ForEachSumType(const Add& add) {
  add.template operator()<float>(DType::kFloat32);
  add.template operator()<double>(DType::kFloat64);
  add.template operator()<BFloat16>(DType::kBFloat16);
  add.template operator()<Float16>(DType::kFloat16);
  add.template operator()<uint32_t>(DType::kInt32);
  add.template operator()<uint64_t>(DType::kInt64);
}

}  // namespace
}  // namespace skiff
