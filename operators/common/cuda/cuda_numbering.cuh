// Numbers the elements that a condition selects, in order.
//
// The elements are cut into tiles. The first launch counts the selected elements of each tile, the
// second adds up the counts of all earlier tiles, and the third visits all elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {
namespace cuda_numbering {

inline constexpr int kRounds = 8;
inline constexpr int64_t kTile = int64_t{kRounds} * kCudaThreads;

template <class IsSelected>
__global__ void __launch_bounds__(kCudaThreads)
    CountTiles(IsSelected is_selected, int64_t count, int64_t tiles, int64_t* counts) {
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    uint32_t selected = 0;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t i = tile * kTile + round * kCudaThreads + threadIdx.x;
      if (i < count && is_selected(i)) ++selected;
    }
    selected = CombineBlock(selected, JoinBySum{});
    if (threadIdx.x == 0) counts[tile] = selected;
  }
}

// By one block: replaces each count by the sum of all earlier counts, with the total behind the
// last.
static __global__ void __launch_bounds__(kCudaThreads) ScanTiles(int64_t tiles, int64_t* counts) {
  int64_t total = 0;
  for (int64_t first = 0; first < tiles; first += kCudaThreads) {
    const int64_t tile = first + threadIdx.x;
    const CudaSums<int64_t> sums = ScanBlock(tile < tiles ? counts[tile] : int64_t{0});
    if (tile < tiles) counts[tile] = total + sums.before;
    total += sums.all;
  }
  if (threadIdx.x == 0) counts[tiles] = total;
}

template <class IsSelected, class Visit>
__global__ void __launch_bounds__(kCudaThreads)
    VisitTiles(IsSelected is_selected, Visit visit, int64_t count, int64_t tiles,
               const int64_t* before) {
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int64_t number = before[tile];
    for (int round = 0; round < kRounds; ++round) {
      const int64_t i = tile * kTile + round * kCudaThreads + threadIdx.x;
      const bool selected = i < count && is_selected(i);
      const CudaSums<uint32_t> sums = ScanBlock(selected ? uint32_t{1} : uint32_t{0});
      if (i < count) visit(i, number + sums.before, selected);
      number += sums.all;
    }
  }
}

}  // namespace cuda_numbering

class CudaNumbering {
 public:
  // For up to `capacity` elements.
  CudaNumbering(PrepareContext& context, int64_t capacity)
      : counts_(context.RequestWorkspace((TilesOf(capacity) + 1) * int64_t{sizeof(int64_t)})) {}

  // Calls visit(i, number, is_selected) on the device for all i < count, where `number` is how many
  // elements before i are selected. is_selected(i) must not depend on what `visit` writes. Returns
  // the address, on the device, of how many there are. `what` names the work in an Error.
  template <class IsSelected, class Visit>
  const int64_t* Run(const KernelContext& run, const char* what, int64_t count,
                     const IsSelected& is_selected, const Visit& visit) const {
    using cuda_numbering::CountTiles;
    using cuda_numbering::ScanTiles;
    using cuda_numbering::VisitTiles;
    const int64_t tiles = TilesOf(count);
    auto* const counts = static_cast<int64_t*>(run.workspace(counts_));
    if (tiles > 0) {
      CountTiles<<<CudaBlocks(tiles), kCudaThreads, 0, StreamOf(run)>>>(is_selected, count, tiles,
                                                                        counts);
    }
    ScanTiles<<<1, kCudaThreads, 0, StreamOf(run)>>>(tiles, counts);
    if (tiles > 0) {
      VisitTiles<<<CudaBlocks(tiles), kCudaThreads, 0, StreamOf(run)>>>(is_selected, visit, count,
                                                                        tiles, counts);
    }
    CheckLaunch(what);
    return counts + tiles;
  }

 private:
  static int64_t TilesOf(int64_t count) {
    return (count + cuda_numbering::kTile - 1) / cuda_numbering::kTile;
  }

  int counts_;
};

}  // namespace skiff
