// Rank tables, the naive way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {

// The rank table of sequences with these lengths.
inline Array RankTableOf(const std::vector<int64_t>& lengths) {
  std::vector<std::vector<double>> entries;
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    entries.push_back(
        {static_cast<double>(i), static_cast<double>(lengths[i]), static_cast<double>(begin)});
    begin += lengths[i];
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a[1] > b[1]; });
  std::vector<double> values;
  for (const auto& entry : entries) values.insert(values.end(), entry.begin(), entry.end());
  return Values({static_cast<int64_t>(lengths.size()), 3}, values, DType::kInt64);
}

}  // namespace skiff::harness
