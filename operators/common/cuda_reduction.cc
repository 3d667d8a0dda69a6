#include "operators/common/cuda_reduction.h"

#include <algorithm>
#include <bit>

namespace skiff {
namespace {

constexpr int64_t kThreads = CudaReduction::kThreads;
// Elements that a thread has in flight. A thread of a part takes at least twice as many.
constexpr int64_t kStep = 8;
// Enough blocks for the largest devices, whose multiprocessors hold eight each.
constexpr int64_t kEnoughBlocks = 1024;

int64_t PowerOfTwoAbove(int64_t count) {
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(count, 1, kThreads))));
}

}  // namespace

CudaReduction::CudaReduction(std::span<const ReductionDim> dims) {
  for (const ReductionDim& dim : dims) (dim.is_reduced ? reduced_count : result_count) *= dim.size;
  int64_t stride = result_count * reduced_count;
  bool last_is_reduced = true;
  for (size_t i = 0; i < dims.size() && stride > 0; ++i) {
    // Neighbours that are both kept or both reduced are one loop.
    const bool is_reduced = dims[i].is_reduced;
    int64_t size = dims[i].size;
    stride /= size;
    for (; i + 1 < dims.size() && (dims[i + 1].is_reduced == is_reduced || dims[i + 1].size == 1);
         ++i) {
      size *= dims[i + 1].size;
      stride /= dims[i + 1].size;
    }
    if (size == 1) continue;
    (is_reduced ? reduced : kept).Append(size, {stride});
    last_is_reduced = is_reduced;
  }
  ChooseTile(last_is_reduced);
}

void CudaReduction::ChooseTile(bool last_is_reduced) {
  lanes_are_neighbours = last_is_reduced;
  if (last_is_reduced) {
    // Not less than a warp, unless results have fewer elements.
    lanes = static_cast<int>(std::max(PowerOfTwoAbove(reduced_count / (kStep / 2)),
                                      std::min<int64_t>(PowerOfTwoAbove(reduced_count), 32)));
  } else {
    // A warp takes 32 neighbours, unless there are fewer results.
    const int64_t wanted = std::min<int64_t>(PowerOfTwoAbove(reduced_count / (2 * kStep)), 8);
    lanes = static_cast<int>(std::max(wanted, kThreads / PowerOfTwoAbove(result_count)));
  }
  tile = static_cast<int>(kThreads / lanes);
  const int64_t tiles = (result_count + tile - 1) / tile;
  if (tiles == 0) return;
  parts = std::clamp<int64_t>(reduced_count / (2 * kStep * lanes), 1,
                              (kEnoughBlocks + tiles - 1) / tiles);
}

int64_t CudaReduction::WorkspaceBytes(int64_t bytes_of_partial) const {
  // Where there are parts, a result has at least 8 lanes of 2 * kStep elements for each of them.
  // And there are fewer than kEnoughBlocks tiles of at most 32 results, and less than twice as many
  // items of tiles and parts. With fewer rows, both bounds hold as well.
  const int64_t elements = result_count * reduced_count;
  const int64_t partials = std::min(elements / (16 * kStep), 2 * kEnoughBlocks * 32);
  return reduced_count < 32 * kStep ? 0 : partials * bytes_of_partial;
}

CudaReduction CudaReduction::OfParts() const {
  CudaReduction combination;
  combination.result_count = result_count;
  combination.reduced_count = parts;
  if (result_count > 1) combination.kept.Append(result_count, {1});
  if (parts > 1) combination.reduced.Append(parts, {result_count});
  combination.ChooseTile(/*last_is_reduced=*/result_count == 1);
  combination.parts = 1;
  return combination;
}

}  // namespace skiff
