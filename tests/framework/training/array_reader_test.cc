#include "framework/training/array_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/training/prefetching_reader.h"
#include "tests/framework/training/counting_source.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;

// Row i of "place" is {2i, 2i + 1}, that of "label" is {i}.
FeedList Arrays(int64_t rows) {
  std::vector<float> places(static_cast<size_t>(2 * rows));
  std::iota(places.begin(), places.end(), 0.0f);
  std::vector<int64_t> labels(static_cast<size_t>(rows));
  std::iota(labels.begin(), labels.end(), int64_t{0});
  return {{"place", Tensor::FromValues<float>({rows, 2}, places)},
          {"label", Tensor::FromValues<int64_t>({rows, 1}, labels)}};
}

TEST(ArrayReader, FeedsTheSameRowsOfAllArrays) {
  ArrayReader reader(Arrays(5), {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.samples, 2);
  EXPECT_EQ(batch.feed("place").shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.feed("place").ToVector<float>(), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(2, 3));
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.samples, 1);
  EXPECT_FALSE(reader.Next(&batch));
}

TEST(ArrayReader, ShufflesAllArraysAlike) {
  ArrayReader reader(Arrays(50), {.batch_size = 50, .shuffle = true, .seed = 4});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  const std::vector<int64_t> order = ShuffledOrder(50, 4, 0);
  EXPECT_EQ(batch.feed("label").ToVector<int64_t>(), order);
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(batch.feed("place").values<float>()[2 * i], 2 * static_cast<float>(order[i]));
  }
}

TEST(ArrayReader, GoesOnFromASavedState) {
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  ArrayReader whole(Arrays(40), options);
  whole.StartEpoch(4);
  Batch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(whole.Next(&batch));
  const ReaderState saved = whole.state();
  const Labels rest = RestOfEpoch(&whole);
  ASSERT_EQ(rest.size(), 9u);
  ArrayReader resumed(Arrays(40), options);
  resumed.Restore(saved);
  EXPECT_EQ(RestOfEpoch(&resumed), rest);
}

TEST(ArrayReader, SkipsBatches) {
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  ExpectSkips([&] { return std::make_unique<ArrayReader>(Arrays(20), options); });
}

TEST(ArrayReader, MayBeReadAhead) {
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  ArrayReader plain(Arrays(10), options);
  PrefetchingReader ahead(std::make_unique<ArrayReader>(Arrays(10), options));
  EXPECT_EQ(RestOfEpoch(&ahead), RestOfEpoch(&plain));
}

// Labels of one number each, and bools, have rows like all others.
TEST(ArrayReader, TakesVectorsAndAnyDType) {
  ArrayReader reader({{"mask", Tensor::FromValues<bool>({3}, {true, false, true})},
                      {"weight", Tensor::FromValues<double>({3, 1, 2}, {0, 1, 2, 3, 4, 5})}},
                     {.batch_size = 2, .drop_last = true});
  EXPECT_THAT(reader.batch_shapes(),
              ElementsAre(ElementsAre(FeedShape{"mask", {2}, DType::kBool},
                                      FeedShape{"weight", {2, 1, 2}, DType::kFloat64})));
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("mask").ToVector<bool>(), ElementsAre(true, false));
  EXPECT_THAT(batch.feed("weight").ToVector<double>(), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(reader.Next(&batch));
}

TEST(ArrayReader, RefusesWhatHasNoRowsInCommon) {
  const Tensor three = Tensor::FromValues<float>({3}, {1, 2, 3});
  Tensor ragged = three;
  ragged.set_lod({{0, 1, 3}});
  const std::vector<std::pair<FeedList, std::string>> refused = {
      {{}, "ArrayReader of no arrays, expected at least one"},
      {{{"x", three}, {"y", Tensor::FromValues<float>({2}, {1, 2})}},
       "arrays[\"y\"] has 2 rows, expected 3 as in \"x\""},
      {{{"x", three}, {"x", three}}, "arrays[\"x\"] is there twice"},
      {{{"x", Tensor::FromValues<float>({}, {1})}}, "arrays[\"x\"] has rank 0, expected rows"},
      {{{"x", ragged}}, "arrays[\"x\"] has LoD, expected dense rows"},
      {{{"x", Tensor({0, 2}, DType::kFloat32)}}, "no samples to read batches from"},
  };
  for (const auto& [arrays, message] : refused) {
    ExpectError([&] { ArrayReader reader(arrays); }, ErrorCode::kInvalidArgument, message);
  }
}

}  // namespace
}  // namespace skiff::training
