// LoDs on a device, and copies of rows that follow them.
//
// LoDs are in host memory and may differ from run to run. A table (cuda_table.cuh) takes their
// numbers to the device: the changed numbers, among the arguments of a kernel.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_table.cuh"

namespace skiff {

// Entries of which each run has another number, up to a capacity.
template <class Entry>
class CudaEntries {
 public:
  CudaEntries(const PrepareContext& context, int64_t capacity)
      : entries_(static_cast<size_t>(std::max<int64_t>(1, capacity))),
        table_(context.place(), entries_.size()) {}

  // The entries of the next Send.
  Entry& operator[](int64_t i) { return entries_[static_cast<size_t>(i)]; }
  const Entry& operator[](int64_t i) const { return entries_[static_cast<size_t>(i)]; }

  // Returns the entries on the device, for the work that is issued to the run's stream from now on.
  const Entry* Send(const KernelContext& run) { return table_.Store(entries_, StreamOf(run)); }

 private:
  std::vector<Entry> entries_;
  CudaTable<Entry> table_;
};

// The offsets of a level as kernels see them.
struct CudaOffsets {
  const int64_t* offsets;
  int64_t count;  // of sequences

  __device__ int64_t Begin(int64_t sequence) const { return offsets[sequence]; }
  __device__ int64_t End(int64_t sequence) const { return offsets[sequence + 1]; }
  // Returns the sequence of the row, which must exist.
  __device__ int64_t SequenceOf(int64_t row) const {
    int64_t sequence = 0;
    int64_t after = count;
    while (after - sequence > 1) {
      const int64_t middle = (sequence + after) / 2;
      (offsets[middle] <= row ? sequence : after) = middle;
    }
    return sequence;
  }
};

// Sends the offsets of a level of an input's LoD.
class CudaLevel {
 public:
  // For at most as many sequences as the lowest level of the input has, or level `level`.
  CudaLevel(const PrepareContext& context, const LoD& lod, int level = -1)
      : level_(level), offsets_(context, static_cast<int64_t>(LevelOf(lod, level).size())) {}
  // For the lowest level of an input whose LoD isn't known before the run.
  CudaLevel(const PrepareContext& context, int64_t most_sequences)
      : level_(-1), offsets_(context, most_sequences + 1) {}

  // Returns the offsets on the device, for work that is issued to the run's stream from now on.
  // `input` is the tensor in this run of the input that the level was made for.
  CudaOffsets Send(const KernelContext& run, const Tensor& input) {
    const std::vector<uint64_t>& offsets = LevelOf(input.lod(), level_);
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets_[static_cast<int64_t>(i)] = static_cast<int64_t>(offsets[i]);
    return {offsets_.Send(run), static_cast<int64_t>(offsets.size()) - 1};
  }
  // Returns an offset of the last run.
  int64_t Sent(int64_t i) const { return offsets_[i]; }

 private:
  static const std::vector<uint64_t>& LevelOf(const LoD& lod, int level) {
    return level < 0 ? lod.back() : lod[static_cast<size_t>(level)];
  }

  int level_;
  CudaEntries<int64_t> offsets_;
};

// Returns the level of a slot's LoD, for a kernel's lambda.
inline std::shared_ptr<CudaLevel> SendLevel(const PrepareContext& context, std::string_view slot,
                                            int level = -1, size_t i = 0) {
  return std::make_shared<CudaLevel>(context, *context.InputLoD(slot, 1, i), level);
}

// How the threads of blocks share rows: some neighbours take the columns of each row.
struct RowThreads {
  int of_row = 1;  // a power of two, at most kCudaThreads
  int blocks = 0;

  RowThreads(int64_t rows, int64_t columns) {
    while (of_row < columns && of_row < kCudaThreads) of_row *= 2;
    blocks = CudaBlocksOfThreads(rows * of_row);
  }
};

// Calls body(row, column) for each number of `rows` rows; row_state(row) is made once for each row
// and is the third argument.
template <class RowState, class Body>
__device__ void ForEachColumn(int64_t rows, int64_t columns, int threads_of_row,
                              const RowState& row_state, const Body& body) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x / threads_of_row;
  const int lane = static_cast<int>(threadIdx.x) & (threads_of_row - 1);
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / threads_of_row; row < rows;
       row += stride) {
    const auto state = row_state(row);
    for (int64_t column = lane; column < columns; column += threads_of_row)
      body(row, column, state);
  }
}

// A row to copy; from -1: it gets a row of the padding.
struct RowMove {
  int64_t from;
  int64_t to;
};

// Row i of padded sequences of `length` rows each.
struct PadMoves {
  CudaOffsets sequences;
  int64_t length;

  __device__ RowMove operator()(int64_t row) const {
    const int64_t i = row / length;
    const int64_t from = sequences.Begin(i) + row % length;
    return {from < sequences.End(i) ? from : -1, row};
  }
};

// Copies rows of `columns` words. move_of(i) says which row is the i-th to copy. `padding` has a
// row of padding_columns words, which is repeated; nullptr: zeros.
template <class Word, class MoveOf>
__global__ void __launch_bounds__(kCudaThreads)
    MoveRows(const Word* from, int64_t rows, int64_t columns, int threads_of_row, MoveOf move_of,
             const Word* padding, int64_t padding_columns, Word* to) {
  ForEachColumn(
      rows, columns, threads_of_row, [&](int64_t i) { return move_of(i); },
      [&](int64_t, int64_t column, const RowMove& move) {
        Word word{};
        if (move.from >= 0) {
          word = from[move.from * columns + column];
        } else if (padding != nullptr) {
          word = padding[column % padding_columns];
        }
        to[move.to * columns + column] = word;
      });
}

template <class Word, class MoveOf>
void LaunchMoveRows(const KernelContext& run, const void* from, int64_t rows, int64_t row_bytes,
                    const MoveOf& move_of, const void* padding, int64_t padding_bytes, void* to) {
  const int64_t columns = row_bytes / static_cast<int64_t>(sizeof(Word));
  const RowThreads threads(rows, columns);
  MoveRows<Word><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
      static_cast<const Word*>(from), rows, columns, threads.of_row, move_of,
      static_cast<const Word*>(padding), padding_bytes / static_cast<int64_t>(sizeof(Word)),
      static_cast<Word*>(to));
  CheckLaunch("copy of rows");
}

struct RowPadding {
  const void* data = nullptr;  // nullptr: zeros
  int64_t bytes = 0;
};

// Copies `rows` rows of row_bytes, a multiple of 2, in words as large as addresses allow.
template <class MoveOf>
void CopyRows(const KernelContext& run, const void* from, int64_t rows, int64_t row_bytes,
              const MoveOf& move_of, void* to, const RowPadding& padding = {}) {
  if (rows == 0 || row_bytes == 0) return;
  const auto bits = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to) |
                    reinterpret_cast<uintptr_t>(padding.data) | static_cast<uintptr_t>(row_bytes) |
                    static_cast<uintptr_t>(padding.bytes);
  const auto launch = [&]<class Word>(Word) {
    LaunchMoveRows<Word>(run, from, rows, row_bytes, move_of, padding.data, padding.bytes, to);
  };
  if (bits % sizeof(uint4) == 0) return launch(uint4{});
  if (bits % sizeof(uint2) == 0) return launch(uint2{});
  if (bits % sizeof(uint32_t) == 0) return launch(uint32_t{});
  launch(uint16_t{});
}

// Adds the CUDA kernel of an op for T.
template <typename T>
void AddCudaKernel(OpRegistry& registry, std::string_view type, KernelFactory prepare) {
  registry.AddCudaKernel(type, kDTypeOf<T>, std::move(prepare));
}

// A factory of a kernel that is made of nothing but the context.
template <class KernelType>
std::unique_ptr<Kernel> PrepareKernel(PrepareContext& context) {
  return std::make_unique<KernelType>(context);
}

}  // namespace skiff
