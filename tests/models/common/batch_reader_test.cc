#include "models/common/batch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>

#include "framework/base/error.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;

// Sample i is {i, epoch}, its label i.
class CountingSource : public SampleSource {
 public:
  explicit CountingSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  Shape input_shape() const override { return {2}; }
  void Read(int64_t sample, int64_t epoch, std::span<float> input, int64_t* label) const override {
    reads.fetch_add(1);
    if (sample == failing_sample.load()) Throw(ErrorCode::kDataLoss, "sample ", sample);
    input[0] = static_cast<float>(sample);
    input[1] = static_cast<float>(epoch);
    *label = sample;
  }

  mutable std::atomic<int64_t> reads{0};
  std::atomic<int64_t> failing_sample{-1};

 private:
  int64_t size_;
};

using Labels = std::vector<std::vector<int64_t>>;

Labels RestOfEpoch(BatchReader* reader) {
  Labels labels;
  Batch batch;
  while (reader->Next(&batch)) labels.push_back(batch.label.ToVector<int64_t>());
  return labels;
}

TEST(BatchReader, GivesEverySampleOnceAnEpoch) {
  const CountingSource source(10);
  BatchReader reader(&source, {.batch_size = 4, .shuffle = true, .seed = 3});
  std::multiset<int64_t> seen;
  const Labels labels = RestOfEpoch(&reader);
  for (const auto& batch : labels) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels.back().size(), 2u);
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(BatchReader, KeepsTheOrderOfTheSourceWithoutShuffling) {
  const CountingSource source(5);
  BatchReader reader(&source, {.batch_size = 2});
  EXPECT_THAT(RestOfEpoch(&reader),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_TRUE(RestOfEpoch(&reader).empty());
}

TEST(BatchReader, DropsAnIncompleteBatchIfAsked) {
  const CountingSource source(5);
  BatchReader reader(&source, {.batch_size = 2, .drop_last = true});
  EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(BatchReader, ReadingAheadChangesNothing) {
  const CountingSource source(101);
  for (const int32_t prefetch : {1, 2, 100}) {
    BatchReader ahead(&source, {.batch_size = 7, .shuffle = true, .prefetch_batches = prefetch});
    BatchReader plain(&source, {.batch_size = 7, .shuffle = true, .prefetch_batches = 0});
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      ahead.Seek({.epoch = epoch});
      plain.Seek({.epoch = epoch});
      Batch a, b;
      while (plain.Next(&b)) {
        ASSERT_TRUE(ahead.Next(&a));
        EXPECT_EQ(a.input.ToVector<float>(), b.input.ToVector<float>());
        EXPECT_EQ(a.label.ToVector<int64_t>(), b.label.ToVector<int64_t>());
        EXPECT_EQ(ahead.position(), plain.position());
      }
      EXPECT_FALSE(ahead.Next(&a));
    }
  }
}

TEST(BatchReader, ShufflesEachEpochAndSeedAnew) {
  const CountingSource source(50);
  BatchReader reader(&source, {.batch_size = 50, .shuffle = true, .seed = 1});
  BatchReader other(&source, {.batch_size = 50, .shuffle = true, .seed = 2});
  const Labels first = RestOfEpoch(&reader);
  reader.Seek({.epoch = 1});
  const Labels second = RestOfEpoch(&reader);
  reader.Seek({.epoch = 0});
  EXPECT_NE(first, second);
  EXPECT_NE(first, RestOfEpoch(&other));
  EXPECT_EQ(first, RestOfEpoch(&reader));
}

TEST(BatchReader, GoesOnFromASavedPosition) {
  const CountingSource source(40);
  const BatchReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  BatchReader whole(&source, options);
  whole.Seek({.epoch = 4});
  Batch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(whole.Next(&batch));
  const ReaderPosition saved = whole.position();
  const Labels rest = RestOfEpoch(&whole);
  BatchReader resumed(&source, options);
  resumed.Seek(saved);
  EXPECT_EQ(RestOfEpoch(&resumed), rest);
}

TEST(BatchReader, EndsWithAFullQueue) {
  const CountingSource source(1000);
  for (int round = 0; round < 20; ++round) {
    BatchReader reader(&source, {.batch_size = 1, .prefetch_batches = 2});
    Batch batch;
    ASSERT_TRUE(reader.Next(&batch));
    if (round % 2 == 0) continue;
    reader.Seek({.epoch = 1, .batch = 500});
    ASSERT_TRUE(reader.Next(&batch));
    EXPECT_EQ(batch.label.Item<int64_t>(), 500);
  }
}

TEST(BatchReader, ReadsNoFurtherAheadThanToldTo) {
  const CountingSource source(1000);
  BatchReader reader(&source, {.batch_size = 1, .prefetch_batches = 3});
  Batch batch;
  for (int taken = 1; taken <= 20; ++taken) {
    ASSERT_TRUE(reader.Next(&batch));
    // The queue, what was taken, and one in the thread's hands.
    EXPECT_LE(source.reads.load(), taken + 3 + 1);
  }
}

TEST(BatchReader, RethrowsWhatTheSourceThrewWhereItHappened) {
  CountingSource source(6);
  source.failing_sample = 3;
  for (const int32_t prefetch : {0, 4}) {
    BatchReader reader(&source, {.batch_size = 2, .prefetch_batches = prefetch});
    Batch batch;
    ASSERT_TRUE(reader.Next(&batch));
    EXPECT_THROW(reader.Next(&batch), Error);
    EXPECT_EQ(reader.position(), (ReaderPosition{.epoch = 0, .batch = 1}));
    EXPECT_THROW(reader.Next(&batch), Error);
    source.failing_sample = -1;
    EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(2, 3), ElementsAre(4, 5)));
    source.failing_sample = 3;
  }
}

TEST(BatchReader, RefusesOptionsAndPlacesThatMakeNoSense) {
  const CountingSource source(5);
  const CountingSource empty(0);
  const auto message = [](const std::function<void()>& action, ErrorCode code) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "no error";
  };
  const auto made_with = [&](const CountingSource& samples, const BatchReaderOptions& options) {
    return message([&] { BatchReader reader(&samples, options); }, ErrorCode::kInvalidArgument);
  };
  EXPECT_EQ(made_with(source, {.batch_size = 0}), "batch_size = 0: expected at least 1");
  EXPECT_EQ(made_with(source, {.batch_size = 6, .drop_last = true}),
            "batch_size = 6 is more than the 5 samples, and incomplete batches are dropped");
  EXPECT_EQ(made_with(source, {.prefetch_batches = -1}),
            "prefetch_batches = -1: expected no negative number");
  EXPECT_EQ(made_with(empty, {}), "no samples to read batches from");
  BatchReader reader(&source, {.batch_size = 2});
  const auto sought = [&](ReaderPosition position) {
    return message([&] { reader.Seek(position); }, ErrorCode::kOutOfRange);
  };
  EXPECT_EQ(sought({.epoch = -1}),
            "epoch -1, batch 0 is no place to read from: there are 3 batches an epoch");
  EXPECT_EQ(sought({.epoch = 0, .batch = 4}),
            "epoch 0, batch 4 is no place to read from: there are 3 batches an epoch");
  reader.Seek({.epoch = 0, .batch = 3});
  EXPECT_TRUE(RestOfEpoch(&reader).empty());
}

}  // namespace
}  // namespace skiff::models
