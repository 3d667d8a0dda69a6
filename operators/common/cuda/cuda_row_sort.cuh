// The kernels of RowSort.
//
// It is a radix sort by digits of 8 bits, of as many passes as the largest number has digits. In
// each pass a block takes a tile of numbers, or a digit:
//   CountDigits    counts how often each digit occurs in the tile
//   ScanCounts     adds up the counts of the digit in all earlier tiles
//   ScatterTile    moves the tile's numbers behind numbers of smaller digits and earlier tiles
// If there is only one tile, its own counts suffice.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

namespace row_sort {

inline constexpr int kWarp = 32;
inline constexpr int kWarps = kCudaThreads / kWarp;
inline constexpr int kRounds = 8;  // in each, a warp takes as many numbers as it has lanes
inline constexpr int kTile = kCudaThreads * kRounds;
inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;
static_assert(kDigits == kCudaThreads, "each thread of a block looks after one digit");

struct Pass {
  const uint32_t* rows;
  const uint32_t* positions;  // nullptr: 0, 1, …
  uint32_t count;
  uint32_t length;
  int shift;  // of the digit
};

// A thread's numbers.
struct Numbers {
  uint32_t rows[kRounds];
  uint32_t ranks[kRounds];  // among those of the warp with the same digit
};

// Returns where in the tile's part of the list the thread's number of a round is.
__device__ inline uint32_t PositionOf(int round) {
  const uint32_t warp = threadIdx.x / kWarp;
  return blockIdx.x * kTile + (warp * kRounds + static_cast<uint32_t>(round)) * kWarp +
         threadIdx.x % kWarp;
}

__device__ inline uint32_t DigitOf(const Pass& pass, uint32_t row) {
  return row >> pass.shift & (kDigits - 1);
}

// Ranks the numbers of a tile and sets before[w][d] to how many of digit d the warps before w have.
// Returns how many of digit threadIdx.x there are.
__device__ inline uint32_t RankTile(const Pass& pass, Numbers* numbers,
                                    uint32_t (&before)[kWarps][kDigits]) {
  for (int warp = 0; warp < kWarps; ++warp) before[warp][threadIdx.x] = 0;
  __syncthreads();
  constexpr uint32_t kAll = 0xFFFFFFFF;
  const uint32_t lane = threadIdx.x % kWarp;
  uint32_t(&counts)[kDigits] = before[threadIdx.x / kWarp];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t at = PositionOf(round);
    if (at - lane >= pass.count) break;  // for the whole warp
    const bool is_number = at < pass.count;
    // All numbers of no row are one.
    const uint32_t given = is_number ? pass.rows[at] : 0;
    const uint32_t row = given < pass.length ? given : pass.length;
    const uint32_t digit = DigitOf(pass, row);
    uint32_t equals = __ballot_sync(kAll, is_number);
    for (int bit = 0; bit < kDigitBits; ++bit) {
      const bool is_set = (digit >> bit & 1) != 0;
      const uint32_t set = __ballot_sync(kAll, is_set);
      equals &= is_set ? set : ~set;
    }
    const uint32_t earlier = equals & ((uint32_t{1} << lane) - 1);
    numbers->rows[round] = row;
    numbers->ranks[round] = counts[digit] + static_cast<uint32_t>(__popc(earlier));
    __syncwarp();
    if (is_number && earlier == 0) counts[digit] += static_cast<uint32_t>(__popc(equals));
    __syncwarp();
  }
  __syncthreads();
  uint32_t sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    const uint32_t count = before[warp][threadIdx.x];
    before[warp][threadIdx.x] = sum;
    sum += count;
  }
  return sum;
}

// counts: [digits][tiles].
static __global__ void CountDigits(Pass pass, uint32_t* counts) {
  __shared__ uint32_t before[kWarps][kDigits];
  Numbers numbers;
  counts[threadIdx.x * gridDim.x + blockIdx.x] = RankTile(pass, &numbers, before);
}

// Replaces the counts of digit blockIdx.x by how many there are in earlier tiles, and sets its
// total.
static __global__ void ScanCounts(uint32_t tiles, uint32_t* counts, uint32_t* totals) {
  uint32_t* const of_digit = counts + blockIdx.x * tiles;
  uint32_t total = 0;
  for (uint32_t first = 0; first < tiles; first += kCudaThreads) {
    const uint32_t tile = first + threadIdx.x;
    const CudaSums<uint32_t> sums = ScanBlock(tile < tiles ? of_digit[tile] : 0);
    if (tile < tiles) of_digit[tile] = total + sums.before;
    total += sums.all;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// earlier: [digits][tiles].
static __global__ void ScatterTile(Pass pass, const uint32_t* earlier, const uint32_t* totals,
                                   uint32_t* rows, uint32_t* positions) {
  __shared__ uint32_t before[kWarps][kDigits];
  __shared__ uint32_t starts[kDigits];
  Numbers numbers;
  const uint32_t own = RankTile(pass, &numbers, before);
  const bool is_only_tile = gridDim.x == 1;
  uint32_t start = ScanBlock(is_only_tile ? own : totals[threadIdx.x]).before;
  if (!is_only_tile) start += earlier[threadIdx.x * gridDim.x + blockIdx.x];
  starts[threadIdx.x] = start;
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t at = PositionOf(round);
    if (at >= pass.count) break;
    const uint32_t row = numbers.rows[round];
    const uint32_t digit = DigitOf(pass, row);
    const uint32_t to = starts[digit] + before[threadIdx.x / kWarp][digit] + numbers.ranks[round];
    rows[to] = row;
    positions[to] = pass.positions == nullptr ? at : pass.positions[at];
  }
}

}  // namespace row_sort
}  // namespace skiff
