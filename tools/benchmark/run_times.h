// Times of a piece of work that runs many times.
#pragma once

#include <chrono>
#include <vector>

namespace skiff {

// Seconds that run() takes.
template <typename Run>
double SecondsOf(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The values that a tenth, a half and nine tenths of all don't exceed.
struct Percentiles {
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};

// By the nearest rank, so each is one of the values. Error for no values.
Percentiles PercentilesOf(std::vector<double> values);

}  // namespace skiff
