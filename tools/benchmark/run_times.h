// Statistics of the times of a repeated piece of work.
#pragma once

#include <chrono>
#include <vector>

namespace skiff {

// Returns the seconds that run() takes.
template <typename Run>
double SecondsOf(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The least of the values that at least 10 %, 50 % and 90 % of all values don't exceed.
struct Percentiles {
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};

// Returns percentiles by nearest rank, so each is one of the values: the one at position
// ceil(share · count), counted from 1, in ascending order. Throws an Error (kInvalidArgument) if
// there are no values.
Percentiles PercentilesOf(std::vector<double> values);

}  // namespace skiff
