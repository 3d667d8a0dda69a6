// Sequences whose lengths are data on a device; sequence_lengths.h is the CPU's.
#pragma once

#include <cstdint>
#include <string>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_lengths.h"

namespace skiff {

// offsets[i] = the sum of the first i lengths, but at most `rows`, so that no row beyond is read.
// If all lengths add up to another number, that is a fault at position `sum_position`. For one
// block.
template <class LengthOf>
__global__ void __launch_bounds__(kCudaThreads)
    SumLengths(int64_t count, int64_t rows, LengthOf length_of, int64_t sum_position,
               uint64_t* fault, int64_t* offsets) {
  int64_t before = 0;  // the sum of all lengths before the threads' own
  for (int64_t first = 0; first < count; first += kCudaThreads) {
    const int64_t i = first + threadIdx.x;
    const int64_t length = i < count ? length_of(i) : 0;
    const CudaSums<int64_t> sums = ScanBlock(length);
    const int64_t sum = before + sums.before + length;
    if (i < count) offsets[i + 1] = sum < rows ? sum : rows;
    before += sums.all;
  }
  if (threadIdx.x > 0) return;
  offsets[0] = 0;
  if (before != rows) NoteFault(fault, sum_position, before);
}

// The offsets of sequences that have the rows of a gradient, in a workspace.
class CudaLengths {
 public:
  CudaLengths(PrepareContext& context, int64_t most_sequences)
      : offsets_(context.RequestWorkspace((most_sequences + 1) * int64_t{sizeof(int64_t)})) {}

  // Of `count` sequences. length_of(i) is called once for each. It notes a fault for a length that
  // is refused, at a position before sum_position, and returns another one.
  template <class LengthOf>
  CudaOffsets Sum(const KernelContext& run, int64_t count, const Tensor& gradient,
                  const LengthOf& length_of, int64_t sum_position) {
    rows_ = gradient.shape()[0];
    sum_position_ = sum_position;
    auto* const offsets = static_cast<int64_t*>(run.workspace(offsets_));
    SumLengths<<<1, kCudaThreads, 0, StreamOf(run)>>>(count, rows_, length_of, sum_position,
                                                      run.fault, offsets);
    CheckLaunch("sums of lengths");
    return {offsets, count};
  }

  // Throws the Error for a fault of the last run if the fault is about the sum.
  void ThrowIfSum(const std::string& op, const DataFault& fault) const {
    if (fault.position == sum_position_) ThrowGradientRows(op, rows_, fault.value);
  }

 private:
  int offsets_;
  int64_t rows_ = 0;
  int64_t sum_position_ = 0;
};

}  // namespace skiff
