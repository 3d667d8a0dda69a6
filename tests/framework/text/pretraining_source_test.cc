#include "framework/text/pretraining_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "framework/base/error.h"
#include "framework/text/document_instances.h"
#include "framework/text/vocabulary_builder.h"
#include "framework/training/prefetching_reader.h"
#include "framework/training/sample_reader.h"
#include "models/common/world_corpus.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using training::Batch;
using training::PrefetchingReader;
using training::SampleReader;
using training::SampleReaderOptions;

constexpr int64_t kLength = 32;
constexpr int64_t kMostMasked = 6;

template <typename T>
std::vector<T> ValuesOf(const Batch& batch, const char* feed) {
  const std::span<const T> values = batch.feed(feed).values<T>();
  return {values.begin(), values.end()};
}

Vocabulary VocabularyOf(const models::WorldCorpus& corpus) {
  WordCounts words;
  for (const Document& document : corpus.documents) {
    for (const std::string& sentence : document) CountWords(sentence, {}, &words);
  }
  return BuildVocabulary(words, {.size = 1000});
}

// The generated corpus, with names masked and sentences in pairs.
class PretrainingSourceTest : public ::testing::Test {
 protected:
  PretrainingSource Source(bool same_every_epoch = false, uint64_t seed = 5) const {
    return PretrainingSource(
        &instances_, &masker_, &vocabulary_,
        {.length = kLength, .seed = seed, .same_every_epoch = same_every_epoch});
  }
  std::unique_ptr<SampleReader> Reader(const PretrainingSource* source) const {
    return std::make_unique<SampleReader>(
        source, SampleReaderOptions{.batch_size = 8, .shuffle = true, .seed = 11});
  }

  const models::WorldCorpus corpus_ = models::GenerateWorldCorpus({.documents = 300});
  const Vocabulary vocabulary_ = VocabularyOf(corpus_);
  const Tokenizer tokenizer_{&vocabulary_};
  const Lexicon lexicon_{tokenizer_, corpus_.Lexicon()};
  const std::vector<TokenizedDocument> documents_ = Tokenize(tokenizer_, corpus_.documents);
  const DocumentInstances instances_{&documents_, &vocabulary_, {.length = kLength, .task_id = 2}};
  const Masker masker_{
      &vocabulary_, &lexicon_, {.unit = MaskingUnit::kPhrase, .most_masked = kMostMasked}};
};

// All batches of an epoch, as text.
std::vector<std::vector<int64_t>> EpochOf(training::Reader* reader, int64_t epoch) {
  reader->StartEpoch(epoch);
  std::vector<std::vector<int64_t>> batches;
  for (Batch batch; reader->Next(&batch);) {
    batches.push_back(ValuesOf<int64_t>(batch, kTokenIds));
    const std::vector<int64_t> labels = ValuesOf<int64_t>(batch, kMaskedLabels);
    batches.back().insert(batches.back().end(), labels.begin(), labels.end());
  }
  return batches;
}

TEST_F(PretrainingSourceTest, FeedsPaddedInputs) {
  const PretrainingSource source = Source();
  const auto reader = Reader(&source);
  Batch batch;
  ASSERT_TRUE(reader->Next(&batch));
  const auto ids = ValuesOf<int64_t>(batch, kTokenIds);
  const auto sentences = ValuesOf<int64_t>(batch, kSentenceIds);
  const auto positions = ValuesOf<int64_t>(batch, kPositionIds);
  const auto mask = ValuesOf<float>(batch, kInputMask);
  EXPECT_EQ(batch.feed(kTokenIds).shape(), Shape({8, kLength}));
  EXPECT_EQ(batch.feed(kSentenceLabel).shape(), Shape({8, 1}));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kTaskIds), Each(2));
  for (size_t row = 0; row < 8; ++row) {
    const size_t first = row * kLength;
    EXPECT_EQ(ids[first], vocabulary_.cls());
    int64_t separators = 0;
    for (size_t i = 0; i < kLength; ++i) {
      const bool is_token = mask[first + i] == 1;
      EXPECT_EQ(is_token, ids[first + i] != vocabulary_.pad());
      EXPECT_EQ(positions[first + i], is_token ? static_cast<int64_t>(i) : 0);
      EXPECT_EQ(sentences[first + i], is_token && separators == 1 ? 1 : 0);
      separators += ids[first + i] == vocabulary_.sep() ? 1 : 0;
    }
    EXPECT_EQ(separators, 2);
  }
}

TEST_F(PretrainingSourceTest, MaskedPositionsAreRowsOfAllTokens) {
  const PretrainingSource source = Source();
  const auto reader = Reader(&source);
  Batch batch;
  ASSERT_TRUE(reader->Next(&batch));
  const auto ids = ValuesOf<int64_t>(batch, kTokenIds);
  const auto positions = ValuesOf<int64_t>(batch, kMaskedPositions);
  const auto labels = ValuesOf<int64_t>(batch, kMaskedLabels);
  const auto weights = ValuesOf<float>(batch, kMaskedWeights);
  int64_t hidden = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / kMostMasked;
    ASSERT_EQ(positions[i] / kLength, row);
    if (weights[i] == 0) {
      EXPECT_EQ(positions[i], row * kLength);
      EXPECT_EQ(labels[i], kIgnoredLabel);
      continue;
    }
    EXPECT_EQ(weights[i], 1);
    EXPECT_FALSE(vocabulary_.IsSpecial(static_cast<TokenId>(labels[i])));
    hidden += ids[static_cast<size_t>(positions[i])] != labels[i] ? 1 : 0;
  }
  EXPECT_GE(hidden, 8);
}

TEST_F(PretrainingSourceTest, DrawsPairsAndMasksAnewInEachEpoch) {
  const PretrainingSource source = Source();
  const auto reader = Reader(&source);
  const auto first = EpochOf(reader.get(), 0);
  EXPECT_NE(EpochOf(reader.get(), 1), first);
  EXPECT_EQ(EpochOf(reader.get(), 0), first);
  const PretrainingSource other = Source(/*same_every_epoch=*/false, /*seed=*/6);
  EXPECT_NE(EpochOf(Reader(&other).get(), 0), first);
}

TEST_F(PretrainingSourceTest, IsTheSameInEachEpochForValidation) {
  const PretrainingSource source = Source(/*same_every_epoch=*/true);
  SampleReader reader(&source, {.batch_size = 8});
  EXPECT_EQ(EpochOf(&reader, 3), EpochOf(&reader, 0));
}

TEST_F(PretrainingSourceTest, GoesOnWhereItWas) {
  const PretrainingSource source = Source();
  PrefetchingReader reader(Reader(&source));
  const auto whole = EpochOf(&reader, 2);
  ASSERT_GT(whole.size(), 4u);
  for (size_t read = 0; read < whole.size(); read += 5) {
    reader.StartEpoch(2);
    Batch batch;
    for (size_t i = 0; i < read; ++i) ASSERT_TRUE(reader.Next(&batch));
    PrefetchingReader resumed(Reader(&source));
    resumed.Restore(reader.state());
    ASSERT_TRUE(resumed.Next(&batch));
    const auto ids = ValuesOf<int64_t>(batch, kTokenIds);
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole[read].begin())) << read;
  }
}

// Long sentences: both segments keep a part, and nothing is longer than the input.
TEST_F(PretrainingSourceTest, CutsWhatIsTooLong) {
  const DocumentInstances instances(&documents_, &vocabulary_, {.length = 9});
  const Masker masker(&vocabulary_, nullptr, {.most_masked = 2});
  const PretrainingSource source(&instances, &masker, &vocabulary_, {.length = 9});
  SampleReader reader(&source, {.batch_size = 4});
  for (Batch batch; reader.Next(&batch);) {
    EXPECT_THAT(ValuesOf<float>(batch, kInputMask), Each(1));
  }
  EXPECT_THAT(instances.Read(0, 0).sentence_ids, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1));
}

TEST_F(PretrainingSourceTest, RefusesInputsThatAreTooShort) {
  ExpectError([&] { DocumentInstances(&documents_, &vocabulary_, {.length = 4}); },
              ErrorCode::kInvalidArgument,
              "inputs of 4 tokens: expected at least 5 for the task next_sentence");
  const PretrainingSource source(&instances_, &masker_, &vocabulary_, {.length = 8});
  SampleReader reader(&source, {.batch_size = 4});
  Batch batch;
  EXPECT_EQ(ErrorOf([&] { reader.Next(&batch); }).code(), ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace skiff::text
