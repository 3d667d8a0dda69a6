#include "framework/training/sample_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "framework/base/error.h"
#include "tests/framework/training/counting_source.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;

TEST(SampleReader, GivesEverySampleOnceAnEpoch) {
  const CountingSource source(10);
  SampleReader reader(&source, {.batch_size = 4, .shuffle = true, .seed = 3});
  std::multiset<int64_t> seen;
  const Labels labels = RestOfEpoch(&reader);
  for (const auto& batch : labels) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels.back().size(), 2u);
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(SampleReader, KeepsTheOrderOfTheSourceWithoutShuffling) {
  const CountingSource source(5);
  SampleReader reader(&source, {.batch_size = 2});
  EXPECT_EQ(reader.batches_in_epoch(), 3);
  EXPECT_THAT(RestOfEpoch(&reader),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_TRUE(RestOfEpoch(&reader).empty());
}

TEST(SampleReader, FeedsTheFieldsOfTheSourceByName) {
  const CountingSource source(5);
  SampleReader reader(&source, {.batch_size = 2});
  reader.StartEpoch(7);
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.samples, 2);
  ASSERT_EQ(batch.feeds.size(), 2u);
  EXPECT_EQ(batch.feeds[0].first, "place");
  EXPECT_EQ(batch.feed("place").shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.feed("place").ToVector<float>(), ElementsAre(0, 7, 1, 7));
  ExpectError([&] { batch.feed("image"); }, ErrorCode::kNotFound,
              "the batch feeds no \"image\", only place, label");
}

TEST(SampleReader, KnowsTheShapesOfItsBatches) {
  const CountingSource source(5);
  const auto rows = [&](const SampleReaderOptions& options) {
    std::vector<int64_t> sizes;
    for (const auto& feeds : SampleReader(&source, options).batch_shapes()) {
      EXPECT_EQ(feeds[0], (FeedShape{"place", {feeds[1].shape[0], 2}, DType::kFloat32}));
      sizes.push_back(feeds[0].shape[0]);
    }
    return sizes;
  };
  EXPECT_THAT(rows({.batch_size = 2}), ElementsAre(2, 1));
  EXPECT_THAT(rows({.batch_size = 2, .drop_last = true}), ElementsAre(2));
  EXPECT_THAT(rows({.batch_size = 5}), ElementsAre(5));
  EXPECT_THAT(rows({.batch_size = 8}), ElementsAre(5));
}

TEST(SampleReader, DropsAnIncompleteBatchIfAsked) {
  const CountingSource source(5);
  SampleReader reader(&source, {.batch_size = 2, .drop_last = true});
  EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(SampleReader, ShufflesEachEpochAndSeedAnew) {
  const CountingSource source(50);
  SampleReader reader(&source, {.batch_size = 50, .shuffle = true, .seed = 1});
  SampleReader other(&source, {.batch_size = 50, .shuffle = true, .seed = 2});
  const Labels first = RestOfEpoch(&reader);
  reader.StartEpoch(1);
  const Labels second = RestOfEpoch(&reader);
  reader.StartEpoch(0);
  EXPECT_NE(first, second);
  EXPECT_NE(first, RestOfEpoch(&other));
  EXPECT_EQ(first, RestOfEpoch(&reader));
}

TEST(SampleReader, GoesOnFromASavedState) {
  const CountingSource source(40);
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  SampleReader whole(&source, options);
  whole.StartEpoch(4);
  Batch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(whole.Next(&batch));
  const ReaderState saved = whole.state();
  const Labels rest = RestOfEpoch(&whole);
  SampleReader resumed(&source, options);
  resumed.Restore(saved);
  EXPECT_EQ(RestOfEpoch(&resumed), rest);
}

TEST(SampleReader, SkipsWithoutReading) {
  const CountingSource source(20);
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  ExpectSkips([&] { return std::make_unique<SampleReader>(&source, options); });
  SampleReader reader(&source, options);
  const int64_t reads = source.reads;
  EXPECT_EQ(reader.Skip(100), 7);
  EXPECT_EQ(source.reads, reads);
}

TEST(SampleReader, StaysWhereTheSourceThrew) {
  CountingSource source(6);
  source.failing_sample = 3;
  SampleReader reader(&source, {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  const ReaderState before = reader.state();
  EXPECT_THROW(reader.Next(&batch), Error);
  EXPECT_EQ(reader.state(), before);
  source.failing_sample = -1;
  EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(SampleReader, RefusesOptionsAndPlacesThatMakeNoSense) {
  const CountingSource source(5);
  const CountingSource empty(0);
  const auto expect_refused = [&](const CountingSource& samples, const SampleReaderOptions& options,
                                  const std::string& message) {
    ExpectError([&] { SampleReader(&samples, options); }, ErrorCode::kInvalidArgument, message);
  };
  expect_refused(source, {.batch_size = 0}, "batch_size = 0: expected at least 1");
  expect_refused(source, {.batch_size = 6, .drop_last = true},
                 "batch_size = 6 is more than the 5 samples, and incomplete batches are dropped");
  expect_refused(empty, {}, "no samples to read batches from");
  SampleReader reader(&source, {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  ExpectError([&] { reader.StartEpoch(-1); }, ErrorCode::kOutOfRange,
              "epoch -1: expected no negative number");
  const auto expect_no_state = [&](const ReaderState& state, const std::string& message) {
    ExpectError([&] { reader.Restore(state); }, ErrorCode::kDataLoss, message);
  };
  expect_no_state({{"epoch", "0"}, {"batch", "4"}},
                  "epoch 0, batch 4 is no place to read from: there are 3 batches an epoch");
  expect_no_state({{"epoch", "-1"}, {"batch", "0"}},
                  "epoch -1, batch 0 is no place to read from: there are 3 batches an epoch");
  expect_no_state({{"epoch", "0"}}, "the checkpoint's state has no \"batch\"");
  expect_no_state({{"epoch", "0"}, {"batch", "x"}},
                  "the checkpoint's state has batch = \"x\": expected an integer of 64 bits");
  // It is where it was.
  EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(2, 3), ElementsAre(4)));
  reader.Restore({{"epoch", "0"}, {"batch", "3"}});
  EXPECT_TRUE(RestOfEpoch(&reader).empty());
}

TEST(ShuffledOrder, IsEmptyForNoSamples) { EXPECT_TRUE(ShuffledOrder(0, 1, 2).empty()); }

}  // namespace
}  // namespace skiff::training
