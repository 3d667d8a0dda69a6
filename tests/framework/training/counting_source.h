// Samples that tell which they are, for tests of readers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
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

// Expects that it makes no difference whether a reader skips batches or reads and discards these.
// `make` returns equal readers with a feed "label".
inline void ExpectSkips(const std::function<std::unique_ptr<Reader>()>& make) {
  const int64_t batches = make()->batches_in_epoch();
  for (int64_t count = 0; count <= batches + 2; ++count) {
    SCOPED_TRACE(count);
    const std::unique_ptr<Reader> skips = make();
    const std::unique_ptr<Reader> reads = make();
    skips->StartEpoch(2);
    reads->StartEpoch(2);
    Batch batch;
    ASSERT_TRUE(skips->Next(&batch));
    ASSERT_TRUE(reads->Next(&batch));
    EXPECT_EQ(skips->Skip(count), std::min(count, batches - 1));
    for (int64_t i = 0; i < count; ++i) reads->Next(&batch);
    EXPECT_EQ(skips->state(), reads->state());
    EXPECT_EQ(RestOfEpoch(skips.get()), RestOfEpoch(reads.get()));
    EXPECT_EQ(skips->Skip(1), 0);
  }
  EXPECT_THROW(make()->Skip(-1), Error);
}

}  // namespace skiff::training
