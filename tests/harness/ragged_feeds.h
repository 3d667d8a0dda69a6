// Ragged tensors for tests, made of lengths.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "framework/tensor/ragged.h"

namespace skiff::harness {

// Returns float32 [rows, width] with the LoD of these lengths and the numbers first, first + step,
// …
inline Tensor RaggedRows(const LevelLengths& lengths, int64_t width, float first = 1,
                         float step = 0) {
  const std::vector<int64_t>& lowest = lengths.back();
  Tensor rows({std::accumulate(lowest.begin(), lowest.end(), int64_t{0}), width}, DType::kFloat32);
  for (float& value : rows.values<float>()) {
    value = first;
    first += step;
  }
  return WithLengths(std::move(rows), lengths);
}

// Returns int64 of this shape with random numbers from 0 to limit - 1.
inline Tensor RandomIds(const Shape& shape, int64_t limit, std::mt19937_64* random) {
  Tensor ids(shape, DType::kInt64);
  for (int64_t& id : ids.values<int64_t>()) {
    id = static_cast<int64_t>((*random)() % static_cast<uint64_t>(limit));
  }
  return ids;
}

// The same of shape [rows], with the LoD of these lengths.
inline Tensor RaggedIds(const LevelLengths& lengths, int64_t limit, std::mt19937_64* random) {
  const std::vector<int64_t>& lowest = lengths.back();
  const int64_t rows = std::accumulate(lowest.begin(), lowest.end(), int64_t{0});
  return WithLengths(RandomIds({rows}, limit, random), lengths);
}

// Returns `parts` random lengths, none of them 0, which sum to `rows`.
inline std::vector<int64_t> RandomLengths(int64_t rows, int64_t parts, std::mt19937_64* random) {
  std::vector<int64_t> lengths(static_cast<size_t>(parts), 1);
  for (int64_t rest = rows - parts; rest > 0; --rest) ++lengths[(*random)() % lengths.size()];
  return lengths;
}

}  // namespace skiff::harness
