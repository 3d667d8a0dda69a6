// Samples that tell which they are, for tests of readers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/base/error.h"
#include "framework/training/sample_reader.h"
#include "framework/training/sample_source.h"

namespace skiff::training {

// Sample i feeds "place" = {i, epoch} and "label" = {i}.
class CountingSource : public SampleSource {
 public:
  explicit CountingSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  std::vector<FeedShape> fields() const override {
    return {{"place", {2}, DType::kFloat32}, {"label", {1}, DType::kInt64}};
  }
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override {
    reads.fetch_add(1);
    if (sample == failing_sample.load()) Throw(ErrorCode::kDataLoss, "sample ", sample);
    const std::span<float> place = RowOf<float>(fields[0], row);
    place[0] = static_cast<float>(sample);
    place[1] = static_cast<float>(epoch);
    RowOf<int64_t>(fields[1], row)[0] = sample;
  }

  mutable std::atomic<int64_t> reads{0};
  std::atomic<int64_t> failing_sample{-1};

 private:
  int64_t size_;
};

using Labels = std::vector<std::vector<int64_t>>;

inline Labels RestOfEpoch(Reader* reader) {
  Labels labels;
  Batch batch;
  while (reader->Next(&batch)) labels.push_back(batch.feed("label").ToVector<int64_t>());
  return labels;
}

}  // namespace skiff::training
