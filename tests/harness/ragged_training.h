// A training whose loop has other rows in each iteration and in each batch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/executor/executor.h"

namespace skiff::harness {

using Lengths = std::vector<int64_t>;

struct RaggedTraining {
  std::vector<float> losses;               // of each step
  std::map<std::string, int64_t> on_host;  // OpsOnHost in the last batch
};

// Trains a recurrence over sequences of these lengths, which attends to ragged notes and drops
// elements, for two steps with each batch. `registry`: nullptr for the default one. `waits`: looks
// at the loss of each step, for which a device must have finished, else of the last one only.
RaggedTraining TrainRagged(Place place, const OpRegistry* registry, const CompileOptions& options,
                           const std::vector<Lengths>& batches, bool waits = true);

}  // namespace skiff::harness
