#include "framework/training/sequence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/training/prefetching_reader.h"
#include "tests/framework/training/counting_source.h"
#include "tests/harness/error_text.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sequence i has the ids i, i, … and the label i.
LabelledSequences SequencesOf(const std::vector<int64_t>& lengths) {
  LabelledSequences data;
  for (size_t i = 0; i < lengths.size(); ++i) {
    data.sequences.emplace_back(static_cast<size_t>(lengths[i]), static_cast<int64_t>(i));
    data.labels.push_back(static_cast<int64_t>(i));
  }
  return data;
}

LabelledSequences ManySequences() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 100; ++i) lengths.push_back(1 + i * 37 % 29);
  return SequencesOf(lengths);
}

std::vector<std::vector<int64_t>> LabelsOfEpoch(Reader* reader, int64_t epoch) {
  reader->StartEpoch(epoch);
  std::vector<std::vector<int64_t>> labels;
  Batch batch;
  while (reader->Next(&batch)) labels.push_back(batch.feed("label").ToVector<int64_t>());
  return labels;
}

std::vector<int64_t> Sorted(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::ranges::sort(all);
  return all;
}

TEST(SequenceReader, FeedsSequencesOneAfterTheOther) {
  const LabelledSequences data = SequencesOf({2, 1, 3});
  SequenceReader reader(&data, {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("ids").ToVector<int64_t>(), ElementsAre(0, 0, 1));
  EXPECT_EQ(batch.feed("ids").lod(), (LoD{{0, 2, 3}}));
  EXPECT_EQ(batch.feed("label").shape(), (Shape{2, 1}));
  EXPECT_EQ(batch.samples, 2);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.feed("ids").lod(), (LoD{{0, 3}}));
  EXPECT_FALSE(reader.Next(&batch));
}

TEST(SequenceReader, SkipsBatches) {
  const LabelledSequences data = ManySequences();
  const SequenceReaderOptions options{.batch_size = 8, .shuffle = true, .seed = 4};
  ExpectSkips([&] { return std::make_unique<SequenceReader>(&data, options); });
}

TEST(SequenceReader, KeepsToBothLimits) {
  const LabelledSequences data = SequencesOf({5, 4, 1, 1, 1, 9, 2});
  SequenceReader reader(&data, {.batch_size = 3, .most_tokens = 9});
  EXPECT_THAT(LabelsOfEpoch(&reader, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5), ElementsAre(6)));
  EXPECT_EQ(reader.batches_in_epoch(), 4);
}

TEST(SequenceReader, ShufflesEachEpochAnotherWay) {
  const LabelledSequences data = ManySequences();
  SequenceReader reader(&data, {.batch_size = 8, .shuffle = true, .seed = 3});
  const auto first = LabelsOfEpoch(&reader, 0);
  const auto second = LabelsOfEpoch(&reader, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(Sorted(first), Sorted(second));
  EXPECT_EQ(Sorted(first).size(), 100u);
  EXPECT_EQ(LabelsOfEpoch(&reader, 0), first);
}

TEST(SequenceReader, SortsPartsByLength) {
  const LabelledSequences data = ManySequences();
  // Returns the sum over the batches of the longest sequence times their number: with padding.
  const auto padded = [&](int64_t sorted_batches) {
    SequenceReader reader(
        &data, {.batch_size = 8, .sorted_batches = sorted_batches, .shuffle = true, .seed = 3});
    int64_t sum = 0;
    for (const auto& labels : LabelsOfEpoch(&reader, 0)) {
      size_t longest = 0;
      for (const int64_t label : labels)
        longest = std::max(longest, data.sequences[static_cast<size_t>(label)].size());
      sum += static_cast<int64_t>(longest * labels.size());
    }
    return sum;
  };
  EXPECT_LT(padded(16), padded(1) * 3 / 4);
}

// Half of the sequences are short. The limit of tokens makes more batches of a part than there
// would be without it, so that parts end within what would be a batch.
TEST(SequenceReader, NoBatchIsOfTwoSortedParts) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 320; ++i) lengths.push_back(i % 2 == 0 ? 1 : 40);
  const LabelledSequences data = SequencesOf(lengths);
  SequenceReader reader(
      &data,
      {.batch_size = 8, .most_tokens = 120, .sorted_batches = 4, .shuffle = true, .seed = 3});
  int64_t mixed = 0;
  for (const auto& labels : LabelsOfEpoch(&reader, 0)) {
    const auto is_short = [](int64_t label) { return label % 2 == 0; };
    const int64_t shorts = std::ranges::count_if(labels, is_short);
    if (shorts > 0 && shorts < std::ssize(labels)) ++mixed;
  }
  // One batch of each of the 10 parts, where its short sequences end.
  EXPECT_LE(mixed, 10);
  EXPECT_EQ(Sorted(LabelsOfEpoch(&reader, 0)).size(), 320u);
}

std::vector<int64_t> IdsOfEpoch(Reader* reader, int64_t epoch) {
  reader->StartEpoch(epoch);
  std::vector<int64_t> ids;
  Batch batch;
  while (reader->Next(&batch)) {
    for (const int64_t id : batch.feed("ids").ToVector<int64_t>()) ids.push_back(id);
  }
  return ids;
}

TEST(SequenceReader, ReplacesOtherIdsInEachEpoch) {
  const LabelledSequences data = SequencesOf(std::vector<int64_t>(100, 50));
  const SequenceReaderOptions options{.replaced = 0.3, .replacement = -1, .seed = 3};
  SequenceReader reader(&data, options);
  const std::vector<int64_t> first = IdsOfEpoch(&reader, 0);
  const std::vector<int64_t> second = IdsOfEpoch(&reader, 1);
  // 5,000 ids: the share is 0.3 with a standard deviation of 0.0065.
  EXPECT_NEAR(static_cast<double>(std::ranges::count(first, -1)) / 5000, 0.3, 0.03);
  int64_t in_both = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(first[i] == -1 || first[i] == static_cast<int64_t>(i / 50));
    in_both += first[i] == -1 && second[i] == -1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(in_both) / 5000, 0.09, 0.03);
  EXPECT_EQ(IdsOfEpoch(&reader, 0), first);
  SequenceReader other(&data, {.replaced = 0.3, .replacement = -1, .seed = 4});
  EXPECT_NE(IdsOfEpoch(&other, 0), first);
}

TEST(SequenceReader, ResumesInsideAnEpoch) {
  const LabelledSequences data = ManySequences();
  const SequenceReaderOptions options{
      .batch_size = 8, .shuffle = true, .replaced = 0.5, .replacement = -1, .seed = 3};
  SequenceReader reader(&data, options);
  reader.StartEpoch(2);
  Batch batch, resumed_batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reader.Next(&batch));
  SequenceReader resumed(&data, options);
  resumed.Restore(reader.state());
  while (reader.Next(&batch)) {
    ASSERT_TRUE(resumed.Next(&resumed_batch));
    EXPECT_EQ(batch.feed("ids").ToVector<int64_t>(), resumed_batch.feed("ids").ToVector<int64_t>());
  }
  EXPECT_FALSE(resumed.Next(&resumed_batch));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss,
                        [&] {
                          resumed.Restore({{"epoch", "0"}, {"batch", "1000"}});
                        }),
              HasSubstr("epoch 0, batch 1000 is no place to read from"));
}

void ExpectSame(const Batch& found, const Batch& expected) {
  EXPECT_EQ(found.feed("ids").ToVector<int64_t>(), expected.feed("ids").ToVector<int64_t>());
  EXPECT_EQ(found.feed("ids").lod(), expected.feed("ids").lod());
  EXPECT_EQ(found.feed("label").ToVector<int64_t>(), expected.feed("label").ToVector<int64_t>());
  EXPECT_EQ(found.samples, expected.samples);
}

PrefetchingReader Ahead(const LabelledSequences& data, const SequenceReaderOptions& options,
                        int32_t batches) {
  return PrefetchingReader(std::make_unique<SequenceReader>(&data, options), batches);
}

TEST(SequenceReader, ReadsAheadWithoutAChange) {
  const LabelledSequences data = ManySequences();
  const SequenceReaderOptions options{
      .batch_size = 8, .most_tokens = 90, .shuffle = true, .replaced = 0.2};
  for (const int32_t batches : {1, 3, 100}) {
    PrefetchingReader ahead = Ahead(data, options, batches);
    SequenceReader plain(&data, options);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      ahead.StartEpoch(epoch);
      plain.StartEpoch(epoch);
      EXPECT_EQ(ahead.batches_in_epoch(), plain.batches_in_epoch());
      Batch found, expected;
      while (plain.Next(&expected)) {
        ASSERT_TRUE(ahead.Next(&found));
        ExpectSame(found, expected);
        EXPECT_EQ(ahead.state(), plain.state());
      }
      EXPECT_FALSE(ahead.Next(&found));
    }
  }
}

// The state is that of the batches taken, not of those read ahead.
TEST(SequenceReader, ResumesInsideAnEpochThatWasReadAhead) {
  const LabelledSequences data = ManySequences();
  const SequenceReaderOptions options{.batch_size = 8, .shuffle = true, .seed = 3};
  PrefetchingReader broken_off = Ahead(data, options, 4);
  broken_off.StartEpoch(2);
  Batch found, expected;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(broken_off.Next(&found));
  PrefetchingReader resumed = Ahead(data, options, 2);
  resumed.Restore(broken_off.state());
  SequenceReader plain(&data, options);
  plain.StartEpoch(2);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(plain.Next(&expected));
  while (plain.Next(&expected)) {
    ASSERT_TRUE(resumed.Next(&found));
    ExpectSame(found, expected);
  }
  EXPECT_FALSE(resumed.Next(&found));
  resumed.StartEpoch(3);
  plain.StartEpoch(3);
  ASSERT_TRUE(resumed.Next(&found) && plain.Next(&expected));
  ExpectSame(found, expected);
}

TEST(SequenceReader, RefusesWhatItCannotRead) {
  const auto message = [](const LabelledSequences& data, const SequenceReaderOptions& options) {
    return InvalidArgumentText([&] { SequenceReader(&data, options); });
  };
  EXPECT_THAT(message(SequencesOf({}), {}), HasSubstr("no sequences"));
  EXPECT_THAT(message(SequencesOf({1, 0}), {}), HasSubstr("sequence 1 has 0 tokens"));
  EXPECT_THAT(message(SequencesOf({1, 9}), {.most_tokens = 8}),
              HasSubstr("sequence 1 has 9 tokens: expected 1 to 8"));
  EXPECT_THAT(message(SequencesOf({1}), {.batch_size = 0}), HasSubstr("batch_size = 0"));
  for (const double replaced : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT(message(SequencesOf({1}), {.replaced = replaced}),
                HasSubstr("expected a share in [0, 1)"));
  }
  EXPECT_THAT(message({.sequences = {{1}}, .labels = {}}, {}), HasSubstr("0 labels for 1"));
}

}  // namespace
}  // namespace skiff::training
