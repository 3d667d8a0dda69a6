// Products of tiles of attention on a device.
//
// A block computes one tile: of kTile rows of its own (queries, or keys), against one tile after
// the other of the other rows. Its threads are a square of kSide x kSide. In the product of rows
// with rows, a thread has kSquare x kSquare scores; in the product of weights with rows, kSquare
// rows of its own and a kSide-th of the columns. What both read goes through shared memory in parts
// of kDepth terms; the next part is loaded while the threads add up the present one.
//
// Elements of shared memory beside the tiles are never written, and nothing that is stored depends
// on them.
//
// T is the type of the computation: float for rows of half.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

// The sizes of tiles for heads of up to kColumns columns.
template <typename T, int kColumns>
struct AttentionTile {
  static constexpr int kSide = 16;
  static constexpr int kSquare = kPackSize<T>;
  static constexpr int kTile = kSide * kSquare;
  static constexpr int kGroups = kColumns / kTile;  // of kSquare columns of a thread
  static constexpr int kDepth = 16;
  // A multiple of a pack, and off the number of banks.
  static constexpr int kRowStride = kTile + kSquare;
  static constexpr int kRowsStage = 2 * kDepth * kRowStride;
  static constexpr int kColumnsStage = kDepth * kColumns;
  static constexpr int kStage = kRowsStage > kColumnsStage ? kRowsStage : kColumnsStage;
  static_assert(kSide * kSide == kCudaThreads && kColumns % kTile == 0);

  // A row for each row of the other tile, with a column for each row of the block's own.
  using Weights = T[kTile][kRowStride];
  using Scores = T[kSquare][kSquare];         // by own row, other row
  using Sums = T[kSquare][kGroups][kSquare];  // by own row, column

  __device__ static int OwnRow() { return threadIdx.x / kSide * kSquare; }
  __device__ static int OtherRow() { return threadIdx.x % kSide * kSquare; }
  __device__ static int Column(int group) { return group * kTile + OtherRow(); }
};

// Rows of a tile. Within it, 32 bits are enough: 64 take twice the registers.
template <typename T>
struct TileRows {
  T* data = nullptr;
  int stride = 0;
};

template <typename T>
__device__ Pack<T> LoadShared(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}

// A thread's elements of a part of a tile, between global and shared memory.
template <typename T, int kCount>
struct StagedElements {
  T values[kCount] = {};
};

// scores = own rows times other rows, over `width` columns.
template <typename T, int kColumns, typename Stored>
__device__ void MultiplyRows(const TileRows<const Stored>& own, int own_count,
                             const TileRows<const Stored>& other, int other_count, int width,
                             T* stage, typename AttentionTile<T, kColumns>::Scores& scores) {
  using Tile = AttentionTile<T, kColumns>;
  constexpr int kLoads = Tile::kTile * Tile::kDepth / kCudaThreads;
  T* const own_stage = stage;
  T* const other_stage = stage + Tile::kDepth * Tile::kRowStride;
  StagedElements<T, kLoads> own_next;
  StagedElements<T, kLoads> other_next;
  // Neighbours load neighbouring columns of a row.
  const auto for_each = [&](int first, int count, const auto& visit) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = threadIdx.x + i * kCudaThreads;
      const int row = at / Tile::kDepth;
      const int column = at % Tile::kDepth;
      if (row < count && first + column < width) visit(i, row, column);
    }
  };
  const auto load = [&](int first) {
    for_each(first, own_count, [&](int i, int row, int column) {
      own_next.values[i] = Widened(own.data[row * own.stride + first + column]);
    });
    for_each(first, other_count, [&](int i, int row, int column) {
      other_next.values[i] = Widened(other.data[row * other.stride + first + column]);
    });
  };
#pragma unroll
  for (int i = 0; i < Tile::kSquare; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kSquare; ++j) scores[i][j] = T(0);
  }
  const bool computes = Tile::OwnRow() < own_count && Tile::OtherRow() < other_count;
  load(0);
  for (int first = 0; first < width; first += Tile::kDepth) {
    __syncthreads();
    for_each(first, own_count, [&](int i, int row, int column) {
      own_stage[column * Tile::kRowStride + row] = own_next.values[i];
    });
    for_each(first, other_count, [&](int i, int row, int column) {
      other_stage[column * Tile::kRowStride + row] = other_next.values[i];
    });
    __syncthreads();
    load(first + Tile::kDepth);
    if (!computes) continue;
    const auto add_column = [&](int column) {
      const Pack<T> of_own = LoadShared(own_stage + column * Tile::kRowStride + Tile::OwnRow());
      const Pack<T> of_other =
          LoadShared(other_stage + column * Tile::kRowStride + Tile::OtherRow());
#pragma unroll
      for (int i = 0; i < Tile::kSquare; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kSquare; ++j) {
          scores[i][j] += of_own.values[i] * of_other.values[j];
        }
      }
    };
    if (width - first >= Tile::kDepth) {
#pragma unroll
      for (int column = 0; column < Tile::kDepth; ++column) add_column(column);
    } else {
      for (int column = 0; column < width - first; ++column) add_column(column);
    }
  }
}

// Writes a thread's weights for the block to multiply. The block must first wait for readers of the
// old weights.
template <typename T, int kColumns>
__device__ void StoreWeights(const typename AttentionTile<T, kColumns>::Scores& of_thread,
                             typename AttentionTile<T, kColumns>::Weights& weights) {
  using Tile = AttentionTile<T, kColumns>;
#pragma unroll
  for (int j = 0; j < Tile::kSquare; ++j) {
    Pack<T> pack;
#pragma unroll
    for (int i = 0; i < Tile::kSquare; ++i) pack.values[i] = of_thread[i][j];
    *reinterpret_cast<Pack<T>*>(&weights[Tile::OtherRow() + j][Tile::OwnRow()]) = pack;
  }
}

// sums += weights times other rows.
template <typename T, int kColumns, typename Stored>
__device__ void AddWeightedRows(const typename AttentionTile<T, kColumns>::Weights& weights,
                                int own_count, const TileRows<const Stored>& other, int other_count,
                                int width, T* stage,
                                typename AttentionTile<T, kColumns>::Sums& sums) {
  using Tile = AttentionTile<T, kColumns>;
  constexpr int kLoads = Tile::kColumnsStage / kCudaThreads;
  StagedElements<T, kLoads> next;
  const auto for_each = [&](int first, const auto& visit) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = threadIdx.x + i * kCudaThreads;
      const int row = at / kColumns;
      const int column = at % kColumns;
      if (first + row < other_count && column < width) visit(i, at, row, column);
    }
  };
  const auto load = [&](int first) {
    for_each(first, [&](int i, int, int row, int column) {
      next.values[i] = Widened(other.data[(first + row) * other.stride + column]);
    });
  };
  load(0);
  for (int first = 0; first < other_count; first += Tile::kDepth) {
    // Also: all weights are written.
    __syncthreads();
    for_each(first, [&](int i, int at, int, int) { stage[at] = next.values[i]; });
    __syncthreads();
    load(first + Tile::kDepth);
    if (Tile::OwnRow() >= own_count) continue;
    const auto add_row = [&](int row) {
      const Pack<T> weight = LoadShared(&weights[first + row][Tile::OwnRow()]);
#pragma unroll
      for (int group = 0; group < Tile::kGroups; ++group) {
        if (Tile::Column(group) >= width) break;
        const Pack<T> pack = LoadShared(stage + row * kColumns + Tile::Column(group));
#pragma unroll
        for (int i = 0; i < Tile::kSquare; ++i) {
#pragma unroll
          for (int j = 0; j < Tile::kSquare; ++j) {
            sums[i][group][j] += weight.values[i] * pack.values[j];
          }
        }
      }
    };
    if (other_count - first >= Tile::kDepth) {
#pragma unroll 4
      for (int row = 0; row < Tile::kDepth; ++row) add_row(row);
    } else {
      for (int row = 0; row < other_count - first; ++row) add_row(row);
    }
  }
}

// Writes factor_of(i) * sums to the block's own rows.
template <typename T, int kColumns, class FactorOf, typename Stored>
__device__ void StoreSums(const typename AttentionTile<T, kColumns>::Sums& sums,
                          const FactorOf& factor_of, int own_count, int width,
                          const TileRows<Stored>& to) {
  using Tile = AttentionTile<T, kColumns>;
#pragma unroll
  for (int i = 0; i < Tile::kSquare; ++i) {
    const int row = Tile::OwnRow() + i;
    if (row >= own_count) break;
    const T factor = factor_of(i);
#pragma unroll
    for (int group = 0; group < Tile::kGroups; ++group) {
#pragma unroll
      for (int j = 0; j < Tile::kSquare; ++j) {
        const int column = Tile::Column(group) + j;
        if (column < width) {
          to.data[row * to.stride + column] = Rounded<Stored>(factor * sums[i][group][j]);
        }
      }
    }
  }
}

}  // namespace skiff
