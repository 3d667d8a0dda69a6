// What the ranks of a training tell each other after each run.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/training/metric.h"

namespace skiff::training {

struct RunReport {
  int32_t stop = 0;                        // why the rank wants to stop; 0: it doesn't
  int64_t samples = 0;                     // of its batch
  std::vector<WeightedValue> values = {};  // of the metrics
};

// Returns the reports of all ranks, in their order; `own` alone for nullptr. All ranks call it,
// with equally many values; throws what Exchange throws.
std::vector<RunReport> GatherReports(Communicator* ranks, const RunReport& own);

}  // namespace skiff::training
