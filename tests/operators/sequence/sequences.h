// Ragged arrays as lists of rows, for the naive references of the ops on sequences.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/attribute.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

inline Rows RowsOf(const Array& x) {
  const auto width = static_cast<size_t>(x.shape.element_count(1, x.shape.rank()));
  Rows rows;
  for (size_t row = 0; row < static_cast<size_t>(x.shape[0]); ++row) {
    rows.emplace_back();
    for (size_t i = 0; i < width; ++i) rows.back().push_back(x.values[row * width + i]);
  }
  return rows;
}

// The rows of each sequence of a LoD level, by default of the lowest.
inline std::vector<Rows> SequencesOf(const Array& x) {
  const Rows rows = RowsOf(x);
  std::vector<Rows> sequences;
  const std::vector<uint64_t>& offsets = x.lod.back();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    sequences.emplace_back(rows.begin() + static_cast<int64_t>(offsets[i]),
                           rows.begin() + static_cast<int64_t>(offsets[i + 1]));
  }
  return sequences;
}

// An array of these rows, with the dims and dtype of the rows of `like`.
inline Array Stacked(const Rows& rows, const Array& like) {
  Array array = like;
  array.shape[0] = static_cast<int64_t>(rows.size());
  array.lod.clear();
  array.values.clear();
  for (const Row& row : rows) {
    for (const double value : row) array.values.push_back(value);
  }
  return array;
}

// The same for the rows of sequences, ragged.
inline Array Joined(const std::vector<Rows>& sequences, const Array& like) {
  Rows rows;
  std::vector<int64_t> lengths;
  for (const Rows& sequence : sequences) {
    lengths.push_back(static_cast<int64_t>(sequence.size()));
    rows.insert(rows.end(), sequence.begin(), sequence.end());
  }
  return Ragged(Stacked(rows, like), lengths);
}

// The sequences of a case.
struct Lengths {
  std::string name;
  std::vector<int64_t> each;

  int64_t rows() const { return std::accumulate(each.begin(), each.end(), int64_t{0}); }
};

// What every op on sequences is tested with.
inline std::vector<Lengths> TestedLengths() {
  return {{"one_row_each", {1, 1, 1}}, {"equal", {3, 3}},
          {"unequal", {4, 1, 2, 2}},   {"without_rows", {0, 3, 0, 1, 0, 0}},
          {"very_unequal", {1, 130}},  {"nothing", {0, 0}}};
}

// The lengths that the op benchmark runs.
inline Lengths BenchmarkLengths() { return {"benchmark", std::vector<int64_t>(256, 32)}; }

// Appends a case of each of TestedLengths and BenchmarkLengths; make(lengths) returns it without a
// name. `prefix` is put before the names.
template <typename Make>
void AddCasesOfLengths(CaseList& cases, const std::string& prefix, const Make& make) {
  for (const Lengths& lengths : TestedLengths()) {
    cases.push_back(make(lengths));
    cases.back().name = prefix + lengths.name;
  }
  cases.push_back(make(BenchmarkLengths()));
  cases.back().name = prefix + BenchmarkLengths().name;
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
