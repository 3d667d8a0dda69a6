// Common parts of the references of recurrent layers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// The tolerance of recurrent layers in bfloat16: eight roundings. States and gradients of gates are
// rounded before a step multiplies them, and each rounding changes all later steps. The cases
// differ by at most 0.029 where many cells make gradients grow from step to step, by half of that
// elsewhere.
constexpr double kRecurrentBFloat16 = 0x1p-5;

using Numbers = std::vector<double>;

inline double Activated(const std::string& activation, double x) {
  if (activation == "sigmoid") return 1 / (1 + std::exp(-x));
  if (activation == "tanh") return std::tanh(x);
  return activation == "relu" ? std::max(x, 0.0) : x;
}

// Returns row * matrix, for columns [first, first + count) of a matrix [row.size(), columns] that
// begins at `offset`.
inline Numbers Times(const Numbers& row, const Array& matrix, size_t offset, size_t columns,
                     size_t first, size_t count) {
  Numbers product(count);
  for (size_t p = 0; p < row.size(); ++p) {
    for (size_t j = 0; j < count; ++j)
      product[j] += row[p] * matrix.values[offset + p * columns + first + j];
  }
  return product;
}

// Returns row `row` of an input, or zeros if it is absent.
inline Numbers RowOf(const Arrays& inputs, const std::string& slot, size_t row, size_t width) {
  if (!inputs.contains(slot)) return Numbers(width);
  const std::vector<double>& values = inputs.at(slot)[0].values;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
  return Numbers(begin, begin + static_cast<std::ptrdiff_t>(width));
}

// The rows of sequences in the order in which a layer visits them.
struct Visit {
  size_t sequence;
  size_t row;
  bool is_first;
  size_t batch_row;  // its position in batch order
};

// Returns the visits of all sequences, one sequence after the other.
inline std::vector<Visit> Visits(const Array& input, bool is_reverse) {
  const std::vector<uint64_t>& offsets = input.lod.back();
  const auto length = [&](size_t s) { return offsets[s + 1] - offsets[s]; };
  const size_t sequences = offsets.size() - 1;
  std::vector<Visit> visits;
  for (size_t s = 0; s < sequences; ++s) {
    for (size_t t = 0; t < length(s); ++t) {
      // Before it are the rows of earlier steps, then the rows of longer sequences in this step.
      size_t before = 0;
      for (size_t other = 0; other < sequences; ++other) {
        before += std::min<size_t>(length(other), t);
        const bool precedes =
            length(other) > length(s) || (length(other) == length(s) && other < s);
        if (precedes && length(other) > t) ++before;
      }
      const size_t row = is_reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
      visits.push_back({s, row, t == 0, before});
    }
  }
  return visits;
}

// Returns an array of `rows` zeros of this width.
inline Array ZeroRows(int64_t rows, size_t width) {
  return Values({rows, static_cast<int64_t>(width)}, Numbers(static_cast<size_t>(rows) * width));
}

// Rows [rows, width] of sequences with particular lengths.
inline Array FewSequences(int64_t width) {
  return Ragged(Uniform({9, width}, 1, -2, 2), {2, 4, 1, 2});
}
inline Array OneRowEach(int64_t width) {
  return Ragged(Uniform({3, width}, 1), std::vector<int64_t>{1, 1, 1});
}
inline Array EqualSequences(int64_t width) {
  return Ragged(Uniform({6, width}, 1), std::vector<int64_t>{3, 3});
}
inline Array EmptySequences(int64_t width) { return Ragged(Uniform({4, width}, 1), {0, 1, 0, 3}); }
inline Array SequencesOfTwoLevels(int64_t width) {
  return Ragged(Uniform({6, width}, 1), {1, 0, 2}, {3, 2, 1});
}
inline Array SequencesWithoutRows(int64_t width) {
  return Ragged(Uniform({0, width}, 1), std::vector<int64_t>{0, 0});
}
inline Array UnequalSequences(int64_t width) {
  return Ragged(Uniform({150, width}, 1), {1, 130, 19});
}
// More rows in a step than a block of sums in registers has.
inline Array TwentySequences(int64_t width) {
  return Ragged(Uniform({40, width}, 1), std::vector<int64_t>(20, 2));
}
// The later steps have less than half of the sequences.
inline Array ManySequences(int64_t width) {
  std::vector<int64_t> lengths(70, 1);
  for (size_t i = 0; i < lengths.size(); i += 3) lengths[i] = 2;
  return Ragged(Uniform({94, width}, 1), lengths);
}
// For benchmarks.
inline Array SentencesOfABatch(int64_t width) {
  std::vector<int64_t> lengths;
  int64_t rows = 0;
  for (int64_t i = 0; i < 64; ++i) rows += lengths.emplace_back(12 + i * 37 % 40);
  return Ragged(Uniform({rows, width}, 1), lengths);
}

inline void SetRow(Array* array, size_t row, const Numbers& values) {
  for (size_t i = 0; i < values.size(); ++i) array->values[row * values.size() + i] = values[i];
}

}  // namespace skiff::harness
