// The metrics of a training: which variables the programs must fetch for them, and sums and means
// over an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/training/metric.h"
#include "framework/training/training_program.h"

namespace skiff::training {

class TrainingMetrics {
 public:
  // Throws an Error (kInvalidArgument) for two metrics of one name, for a streaming metric without
  // streamed variables or with a variable or a weight, for streamed variables without a streaming
  // metric, and for a decisive metric that isn't among the metrics.
  explicit TrainingMetrics(const TrainingProgram& program);

  // Returns the loss, then the program's metrics.
  const std::vector<Metric>& all() const { return metrics_; }
  // Returns the metric that decides which epoch is best.
  const Metric& decisive() const { return metrics_[decisive_]; }

  // Returns the variables that a training step must fetch for Measure and LearningRate.
  const FetchList& training_fetches() const { return training_fetches_; }
  // Returns the variables that a step of the test program must fetch for Measure and Stream.
  const FetchList& evaluation_fetches() const { return evaluation_fetches_; }

  // Returns the value of each metric in a step with `samples` samples; streaming metrics have the
  // weight 0. The step has fetched training_fetches() or evaluation_fetches(). Throws an Error
  // (kInvalidArgument) for a value of a dtype other than float32, float64, int32 or int64.
  std::vector<WeightedValue> Measure(const BoundProgram& step, int64_t samples) const;
  // Gives the values of a step, which has fetched evaluation_fetches(), to the streaming metrics.
  // Throws what these throw.
  void Stream(const BoundProgram& step) const;
  // Returns the values by name, of which the loss is the first; streaming metrics have none.
  MetricValues Named(const std::vector<WeightedValue>& values) const;
  // Adds the values of a step to the sums, of which there is one for each metric.
  void Add(const std::vector<WeightedValue>& values, std::vector<WeightedSum>* sums) const;
  // Returns the learning rate of a training step, which has fetched training_fetches().
  double LearningRate(const BoundProgram& step) const;
  // Returns the means of the metrics whose weights aren't all 0.
  MetricValues Means(const std::vector<WeightedSum>& sums) const;
  // Returns a text such as "loss 0.2450  accuracy 91.20 %" of the metrics that have a value.
  std::string Text(const MetricValues& values) const;

 private:
  // Where the variables of a metric are among the fetches.
  struct Places {
    size_t value = 0;
    std::optional<size_t> weight;
    std::vector<size_t> streamed;  // of a streaming metric, which has no other place
  };

  void FindPlaces(const std::string& learning_rate);

  std::vector<Metric> metrics_;
  std::vector<Places> places_;
  FetchList training_fetches_;    // the learning rate is the last fetch
  FetchList evaluation_fetches_;  // the variables of streaming metrics are the last fetches
  size_t decisive_ = 0;           // among metrics_
};

}  // namespace skiff::training
