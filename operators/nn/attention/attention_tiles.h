// The tiles in which head_attention.h computes: scratch memory and places.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/element_count.h"
#include "operators/nn/attention/head_attention.h"

namespace skiff {

inline constexpr int64_t kTile = AttentionSizes::kTile;
// The elements of the widest vector. Rows of scratch memory are padded to that.
inline constexpr int64_t kPadding = 16;

inline int64_t PaddedWidth(const AttentionSizes& sizes) { return RoundUp(sizes.width, kPadding); }

// The scratch memory of a tile of queries and a tile of keys. "Rows" have an item (a query or a
// key) a row and are padded by zeros to whole vectors. "Columns" have an item a column, kTile to a
// row. Tiles have a key a row and a query a column: so the statistics of queries are vectors, and
// a tile's rows and columns are both read without packing it.
template <typename T>
struct AttentionScratch {
  AttentionScratch(const AttentionSizes& sizes, void* memory) {
    T* next = static_cast<T*>(memory);
    const int64_t matrix = PaddedWidth(sizes) * kTile;
    for (T** buffer : {&query_columns, &query_rows, &key_rows, &value_rows, &out_columns, &out_rows,
                       &query_sums, &sums}) {
      *buffer = next;
      next += matrix;
    }
    for (T** buffer : {&scores, &gradients}) {
      *buffer = next;
      next += kTile * kTile;
    }
    for (T** buffer : {&row_max, &row_sum, &row_factor}) {
      *buffer = next;
      next += kTile;
    }
    words = reinterpret_cast<uint32_t*>(next);
  }

  static int64_t Bytes(const AttentionSizes& sizes) {
    const int64_t matrices = MultiplyCounts(PaddedWidth(sizes), 8 * kTile);
    const int64_t tiles = 2 * kTile * kTile;
    return ByteCount(AddCounts(matrices, tiles + 3 * kTile), kDTypeOf<T>) +
           ByteCount(kTile * kTile, DType::kInt32);
  }

  T* query_columns;  // scaled
  T* query_rows;
  T* key_rows;
  T* value_rows;
  T* out_columns;  // of Out@GRAD, as out_rows
  T* out_rows;
  T* query_sums;  // rows: of Out in forward
  T* sums;        // rows: what a tile adds to a gradient
  T* scores;      // a tile, later of weights
  T* gradients;   // a tile, of the scores
  T* row_max;
  T* row_sum;     // in backward 1 / sum
  T* row_factor;  // what earlier sums are multiplied by; in backward sum(Out · Out@GRAD)
  uint32_t* words;
};

// What becomes of the sums of a product of tiles: to = factor * sum or, if `add`,
// to = row_factors[r] * to + factor * sum in row r.
template <typename T>
struct ProductSums {
  T* data;
  int64_t stride;
  T factor = 1;
  bool add = false;
  const T* row_factors = nullptr;  // nullptr: 1

  ProductSums From(int64_t row, int64_t column) const {
    ProductSums rest = *this;
    rest.data += row * stride + column;
    if (row_factors != nullptr) rest.row_factors += row;
    return rest;
  }
};

// A tile's place among all queries and keys.
struct TileExtent {
  int64_t query = 0;  // the first one
  int64_t queries = 0;
  int64_t key = 0;
  int64_t keys = 0;
};

inline TileExtent ExtentOf(const AttentionSizes& sizes, int64_t known_keys, int64_t query_tile,
                           int64_t key_tile) {
  TileExtent extent{.query = query_tile * kTile, .key = key_tile * kTile};
  extent.queries = std::min(kTile, sizes.queries - extent.query);
  // No keys if none of the queries sees any. Otherwise all, as the first queries to see some of
  // them overwrite the gradients of the whole tile.
  const bool is_seen = sizes.VisibleKeys(extent.query + extent.queries - 1) > extent.key;
  extent.keys = is_seen ? std::clamp<int64_t>(known_keys - extent.key, 0, kTile) : 0;
  return extent;
}

}  // namespace skiff
