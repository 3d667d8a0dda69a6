#include <cuda_runtime.h>

#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_row_sort.cuh"
#include "operators/common/cuda/cuda_row_sort.h"

namespace skiff {
namespace {

using row_sort::kDigitBits;
using row_sort::kDigits;
using row_sort::kTile;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - kTile;

int64_t TilesOf(int64_t count) { return (count + kTile - 1) / kTile; }

}  // namespace

void CheckDeviceRows(const OpContext& context, int64_t length) {
  constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max() - 1;
  SKIFF_ENFORCE(length <= kMostRows, kUnimplemented, context.op().type, ": there are ", length,
                " rows, on a device expected at most ", kMostRows);
}

RowSort::RowSort(PrepareContext& context, int64_t capacity) : capacity_(capacity) {
  SKIFF_ENFORCE(capacity <= kMost, kUnimplemented, context.op().type, ": there are ", capacity,
                " row numbers, on a device expected at most ", kMost);
  const int64_t counts = (TilesOf(capacity) + 1) * kDigits;
  workspace_ = context.RequestWorkspace((4 * capacity + counts) * int64_t{sizeof(uint32_t)});
}

SortedRows RowSort::Sort(const KernelContext& run, int64_t count, int64_t length) const {
  auto* const room = static_cast<uint32_t*>(run.workspace(workspace_));
  uint32_t* rows = room;
  uint32_t* rows_out = rows + capacity_;
  uint32_t* positions = rows_out + capacity_;
  uint32_t* positions_out = positions + capacity_;
  uint32_t* counts = positions_out + capacity_;
  const auto tiles = static_cast<uint32_t>(TilesOf(count));
  uint32_t* totals = counts + tiles * kDigits;
  for (int shift = 0; tiles > 0 && (shift == 0 || length >> shift > 0); shift += kDigitBits) {
    const row_sort::Pass pass{.rows = rows,
                              .positions = shift == 0 ? nullptr : positions,
                              .count = static_cast<uint32_t>(count),
                              .length = static_cast<uint32_t>(length),
                              .shift = shift};
    if (tiles > 1) {
      row_sort::CountDigits<<<tiles, kCudaThreads, 0, StreamOf(run)>>>(pass, counts);
      row_sort::ScanCounts<<<kDigits, kCudaThreads, 0, StreamOf(run)>>>(tiles, counts, totals);
    }
    row_sort::ScatterTile<<<tiles, kCudaThreads, 0, StreamOf(run)>>>(pass, counts, totals, rows_out,
                                                                     positions_out);
    std::swap(rows, rows_out);
    std::swap(positions, positions_out);
  }
  CheckLaunch("sort of rows");
  return {rows, positions, count, static_cast<uint32_t>(length)};
}

}  // namespace skiff
