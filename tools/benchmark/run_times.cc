#include "tools/benchmark/run_times.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {

Percentiles PercentilesOf(std::vector<double> values) {
  SKIFF_ENFORCE(!values.empty(), kInvalidArgument, "percentiles of no values");
  std::ranges::sort(values);
  // Nearest rank, without interpolation: each percentile is a time that a run really took.
  const auto at = [&](size_t percent) { return values[(percent * values.size() + 99) / 100 - 1]; };
  return {.p10 = at(10), .median = at(50), .p90 = at(90)};
}

}  // namespace skiff
