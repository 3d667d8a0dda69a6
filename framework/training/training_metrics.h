// The metrics of a training: which variables the programs must fetch for them, sums and means over
// an epoch, and evaluations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/training/bound_feeds.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
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

  // Returns the variables that a training step must fetch for Add and LearningRate.
  const FetchList& training_fetches() const { return training_fetches_; }
  // Returns the variables that a step of the test program must fetch for Evaluate.
  const FetchList& evaluation_fetches() const { return evaluation_fetches_; }

  // Adds the values of a step with `samples` samples to the sums, of which there is one for each
  // metric. Returns the values, of which the loss is the first; streaming metrics have none. The
  // step has fetched training_fetches() or evaluation_fetches(). Throws an Error
  // (kInvalidArgument) for a value of a dtype other than float32, float64, int32 or int64.
  MetricValues Add(const BoundProgram& step, int64_t samples, std::vector<WeightedSum>* sums) const;
  // Returns the learning rate of a training step, which has fetched training_fetches().
  double LearningRate(const BoundProgram& step) const;
  // Returns the means of the metrics whose weights aren't all 0.
  MetricValues Means(const std::vector<WeightedSum>& sums) const;
  // Returns a text such as "loss 0.2450  accuracy 91.20 %" of the metrics that have a value.
  std::string Text(const MetricValues& values) const;

  // Runs the test program on epoch 0 of the reader. Returns the means of the metrics and the
  // results of the streaming metrics. `program` fetches evaluation_fetches(). Throws what Add,
  // reader, program and streaming metrics throw.
  MetricValues Evaluate(Reader* reader, BoundFeeds* program) const;

 private:
  // Where the variables of a metric are among the fetches.
  struct Places {
    size_t value = 0;
    std::optional<size_t> weight;
    std::vector<size_t> streamed;  // of a streaming metric, which has no other place
  };

  void FindPlaces(const std::string& learning_rate);
  // Gives the values of an evaluation's batch to the streaming metrics.
  void Stream(const BoundProgram& step) const;

  std::vector<Metric> metrics_;
  std::vector<Places> places_;
  FetchList training_fetches_;    // the learning rate is the last fetch
  FetchList evaluation_fetches_;  // the variables of streaming metrics are the last fetches
  size_t decisive_ = 0;           // among metrics_
};

}  // namespace skiff::training
