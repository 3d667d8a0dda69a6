#include "models/char_rnn/stream_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 0 … n - 1
std::vector<int64_t> Text(size_t n) {
  std::vector<int64_t> text(n);
  std::iota(text.begin(), text.end(), 0);
  return text;
}

std::vector<std::vector<int64_t>> IdsOf(training::Reader* reader) {
  std::vector<std::vector<int64_t>> ids;
  for (training::Batch batch; reader->Next(&batch);)
    ids.push_back(batch.feed(StreamReader::kIds).ToVector<int64_t>());
  return ids;
}

TEST(StreamReader, CutsTheTextIntoStreams) {
  // Two streams of 7 characters, from 0 and 7, each of which has a next one; 15 is left out.
  const std::vector<int64_t> text = Text(16);
  StreamReader reader(&text, {.batch_size = 2, .steps = 3});
  EXPECT_EQ(reader.batches_in_epoch(), 3);
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.feed("ids").shape(), Shape({3, 2}));
  EXPECT_EQ(batch.feed("label").shape(), Shape({3, 2, 1}));
  EXPECT_THAT(batch.feed("ids").ToVector<int64_t>(), ElementsAre(0, 7, 1, 8, 2, 9));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(1, 8, 2, 9, 3, 10));
  EXPECT_EQ(batch.feed("carried").Item<float>(), 0);
  EXPECT_EQ(batch.samples, 6);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("ids").ToVector<int64_t>(), ElementsAre(3, 10, 4, 11, 5, 12));
  EXPECT_EQ(batch.feed("carried").Item<float>(), 1);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("ids").ToVector<int64_t>(), ElementsAre(6, 13));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(7, 14));
  EXPECT_EQ(batch.feed("carried").Item<float>(), 1);
  EXPECT_EQ(batch.samples, 2);
  EXPECT_FALSE(reader.Next(&batch));
  reader.StartEpoch(1);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.feed("carried").Item<float>(), 0);
}

TEST(StreamReader, KnowsTheShapesOfItsBatches) {
  const std::vector<int64_t> text = Text(16);
  for (const int64_t steps : {1, 3, 7, 100}) {
    StreamReader reader(&text, {.batch_size = 2, .steps = steps});
    const auto shapes = reader.batch_shapes();
    EXPECT_EQ(shapes.size(), steps == 3 ? 2 : 1);
    int64_t batches = 0;
    for (training::Batch batch; reader.Next(&batch); ++batches) {
      std::vector<training::FeedShape> found;
      for (const auto& [name, tensor] : batch.feeds)
        found.push_back({name, tensor.shape(), tensor.dtype()});
      EXPECT_THAT(shapes, ::testing::Contains(found));
    }
    EXPECT_EQ(batches, reader.batches_in_epoch());
  }
}

TEST(StreamReader, GoesOnWhereAnotherOneWas) {
  const std::vector<int64_t> text = Text(100);
  const StreamReaderOptions options{.batch_size = 3, .steps = 4};
  StreamReader reader(&text, options);
  reader.StartEpoch(2);
  training::Batch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reader.Next(&batch));
  StreamReader other(&text, options);
  other.Restore(reader.state());
  EXPECT_EQ(other.state(), reader.state());
  EXPECT_EQ(IdsOf(&other), IdsOf(&reader));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss,
                        [&] {
                          other.Restore({{"epoch", "0"}, {"batch", "10"}});
                        }),
              HasSubstr("epoch 0, batch 10 is no place to read from: there are 9 batches"));
  EXPECT_EQ(other.state(), reader.state());
}

TEST(StreamReader, SkipsBatches) {
  const std::vector<int64_t> text = Text(100);
  const StreamReaderOptions options{.batch_size = 3, .steps = 4};
  for (const int64_t count : {0, 1, 8, 9, 20}) {
    StreamReader reader(&text, options);
    StreamReader other(&text, options);
    training::Batch batch;
    for (int64_t i = 0; i < count; ++i) other.Next(&batch);
    EXPECT_EQ(reader.Skip(count), std::min<int64_t>(count, 9));
    EXPECT_EQ(reader.state(), other.state());
    EXPECT_EQ(IdsOf(&reader), IdsOf(&other));
  }
}

TEST(StreamReader, RefusesWhatGivesNoBatch) {
  const std::vector<int64_t> text = Text(8);
  const auto message = [&](const StreamReaderOptions& options) {
    return InvalidArgumentText([&] { StreamReader(&text, options); });
  };
  EXPECT_THAT(message({.batch_size = 8}),
              HasSubstr("a text of 8 characters is too short for batch_size = 8 streams: expected "
                        "at least 9 characters"));
  EXPECT_THAT(message({.batch_size = 0}), HasSubstr("batch_size = 0: expected at least 1"));
  EXPECT_THAT(message({.batch_size = 2, .steps = 0}), HasSubstr("steps = 0: expected at least 1"));
  const std::vector<int64_t> nothing;
  EXPECT_THAT(InvalidArgumentText([&] { StreamReader(&nothing, {.batch_size = 1}); }),
              HasSubstr("a text of 0 characters"));
  StreamReader reader(&text, {.batch_size = 7});
  EXPECT_EQ(reader.batches_in_epoch(), 1);
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { reader.StartEpoch(-1); }),
              HasSubstr("epoch -1"));
}

}  // namespace
}  // namespace skiff::models
