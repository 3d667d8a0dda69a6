// The report of a training on an epoch.
#pragma once

#include <cstdint>

#include "framework/training/metric.h"

namespace skiff::training {

struct TrainingRecord {
  int64_t epoch = 0;   // epochs finished
  int64_t step = 0;    // steps finished
  double seconds = 0;  // since the training began, breaks left out
  double learning_rate = 0;
  double samples_per_second = 0;
  MetricValues train = {};
  MetricValues validation = {};
  MetricValues averaged = {};  // validation with averaged parameters; empty if nothing is averaged
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

}  // namespace skiff::training
