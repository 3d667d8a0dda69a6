// The F1 of the entities of a whole evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/training/streaming_metric.h"

namespace skiff::models {

// Sums of layers::ChunkEval's counts. Their F1 isn't the mean of the F1 of batches.
class ChunkF1 final : public training::StreamingMetric {
 public:
  void Reset() override { inferred_ = labelled_ = correct_ = 0; }
  // Takes the chunks that are inferred, labelled and both, each an int64 of one element.
  void Add(std::span<const Tensor> values) override;
  void AddCounts(int64_t inferred, int64_t labelled, int64_t correct);
  // Returns 2 · correct / (inferred + labelled), which is 2 · precision · recall / (precision +
  // recall).
  double Value() const override;
  std::optional<std::vector<double>> State() const override;
  void Merge(std::span<const double> state) override;

 private:
  int64_t inferred_ = 0;
  int64_t labelled_ = 0;
  int64_t correct_ = 0;
};

}  // namespace skiff::models
