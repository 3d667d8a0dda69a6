#include "tools/benchmark/run_times.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"

namespace skiff {

Percentiles PercentilesOf(std::vector<double> values) {
  SKIFF_ENFORCE(!values.empty(), kInvalidArgument, "percentiles of no values");
  std::ranges::sort(values);
  // Nearest rank, without interpolation: each percentile is a time that a run really took.
  const auto at = [&](double share) {
    return values[static_cast<size_t>(std::round(share * static_cast<double>(values.size() - 1)))];
  };
  return {.p10 = at(0.1), .median = at(0.5), .p90 = at(0.9)};
}

}  // namespace skiff
