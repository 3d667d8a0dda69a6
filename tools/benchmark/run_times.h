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

// The values that 10 %, 50 % and 90 % of all values don't exceed.
struct Percentiles {
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};

// Returns percentiles by nearest rank, so each is one of the values. Throws Error for no values.
Percentiles PercentilesOf(std::vector<double> values);

}  // namespace skiff
