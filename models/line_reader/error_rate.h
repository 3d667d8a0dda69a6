// The character error rate of an evaluation.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "framework/training/streaming_metric.h"

namespace skiff::models {

// The sum of edit distances over the sum of the lengths of the references: how many characters must
// be inserted, deleted or replaced for each right one. It may be above 1.
class ErrorRate final : public training::StreamingMetric {
 public:
  void Reset() override { distance_ = length_ = 0; }
  // Takes distances [N, 1], float32, and lengths [N], int64. Throws an Error (kInvalidArgument) for
  // anything else.
  void Add(std::span<const Tensor> values) override;
  // NaN if all references are empty.
  double Value() const override { return distance_ / length_; }
  std::optional<std::vector<double>> State() const override {
    return std::vector<double>{distance_, length_};
  }
  void Merge(std::span<const double> state) override;

 private:
  double distance_ = 0;
  double length_ = 0;
};

}  // namespace skiff::models
