// Numbers that a program computes in each step, and whose means a training reports for each epoch;
// and numbers that are made of what a whole evaluation computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/training/streaming_metric.h"

namespace skiff::training {

struct Metric {
  std::string name = {};      // in messages, the log and the learning curve
  std::string variable = {};  // what to fetch: one float32, float64, int32 or int64 number
  // The variable to fetch as the weight of a step in the mean over an epoch, such as the number of
  // tokens. Empty: the number of samples in the batch. A metric whose weights are all 0 has no mean
  // and isn't reported.
  std::string weight = {};
  bool percent = false;  // printed as a percentage
  bool larger_is_better = false;
  // In place of `variable` and `weight`: the result of all values that the named variables of the
  // test program have in the batches of an evaluation. No such metric is reported of the training's
  // own batches. nullptr: none.
  std::shared_ptr<StreamingMetric> streaming = nullptr;
  std::vector<std::string> streamed = {};
};

// Values of metrics by name, in the order of the metrics.
class MetricValues {
 public:
  MetricValues() = default;
  explicit MetricValues(std::vector<std::pair<std::string, double>> entries)
      : entries_(std::move(entries)) {}

  void Add(std::string name, double value);
  // Throws an Error (kNotFound) if there is no such metric.
  double at(std::string_view name) const;
  bool contains(std::string_view name) const;
  bool empty() const { return entries_.empty(); }
  const std::vector<std::pair<std::string, double>>& entries() const { return entries_; }
  friend bool operator==(const MetricValues&, const MetricValues&) = default;

 private:
  std::vector<std::pair<std::string, double>> entries_;
};

// The value of a metric in one step, and its weight in means.
struct WeightedValue {
  double value = 0;
  double weight = 0;
};

// The sums that give the mean of one metric.
struct WeightedSum {
  double sum = 0;
  double weight = 0;

  void Add(const WeightedValue& one) {
    sum += one.weight * one.value;
    weight += one.weight;
  }
  double Mean() const { return sum / weight; }
};

// Returns "24.50 %" or "0.2450".
std::string MetricText(const Metric& metric, double value);

}  // namespace skiff::training
