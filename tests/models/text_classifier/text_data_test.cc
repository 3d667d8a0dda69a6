#include "models/text_classifier/text_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "framework/io/file.h"
#include "models/text_classifier/generated_reviews.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

TEST(GeneratedReviews, AreAFunctionOfTheirOptions) {
  const auto reviews = GenerateReviews({.reviews = 50});
  const auto again = GenerateReviews({.reviews = 50});
  const auto others = GenerateReviews({.reviews = 50, .seed = 2});
  for (size_t i = 0; i < reviews.size(); ++i) {
    EXPECT_EQ(reviews[i].text, again[i].text);
    EXPECT_EQ(reviews[i].label, again[i].label);
  }
  EXPECT_NE(reviews[0].text, others[0].text);
  EXPECT_THAT(InvalidArgumentText([] { GenerateReviews({.reviews = 0}); }),
              HasSubstr("reviews = 0"));
}

TEST(GeneratedReviews, HaveBothLabelsAndNegations) {
  int64_t good = 0, negated = 0;
  for (const text::LabelledText& review : GenerateReviews({.reviews = 1000})) {
    good += review.label;
    negated += review.text.find(" not ") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(good, 400);
  EXPECT_LT(good, 600);
  EXPECT_GT(negated, 100);
}

TEST(TextData, WordsAloneDoNotTellTheLabelOfGeneratedReviews) {
  const TextData data({});
  EXPECT_EQ(data.classes(), 2);
  EXPECT_GT(data.naive_bayes_accuracy(), 0.5);
  EXPECT_LT(data.naive_bayes_accuracy(), 0.75);
  EXPECT_THAT(data.extent(), HasSubstr("3600 to train, 400 to validate, 2 classes (naive Bayes: "));
}

TEST(TextData, OnlyTrainingTokensAreDropped) {
  const TextData data({.word_dropout = 0.25});
  // Returns the share of unknown tokens in an epoch.
  const auto unknown = [&](std::unique_ptr<training::Reader> reader) {
    int64_t tokens = 0, found = 0;
    for (training::Batch batch; reader->Next(&batch);) {
      for (const int64_t id : batch.feed("ids").ToVector<int64_t>()) {
        ++tokens;
        found += id == data.vocabulary().unknown() ? 1 : 0;
      }
    }
    return static_cast<double>(found) / static_cast<double>(tokens);
  };
  EXPECT_NEAR(unknown(data.TrainReader()), 0.25, 0.01);
  EXPECT_EQ(unknown(data.ValidationReader()), 0);
  for (const double share : {-0.5, 1.0}) {
    EXPECT_THAT(InvalidArgumentText([&] { TextData({.word_dropout = share}); }),
                HasSubstr("expected a share in [0, 1)"));
  }
}

TEST(TextData, BatchesHaveWholeTexts) {
  const TempDirectory directory;
  const std::string path = JoinPath(directory.path(), "texts.tsv");
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i % 2 == 0 ? "0\tbad bad movie\n" : "1\tgood movie\n";
  AtomicWriteFile(path, lines);
  const TextData data({.data = path, .vocabulary_size = 100, .batch_size = 4});
  const auto reader = data.TrainReader();
  reader->StartEpoch(0);
  training::Batch batch;
  int64_t texts = 0;
  while (reader->Next(&batch)) {
    texts += batch.samples;
    const LoD lod = batch.feed("ids").lod();
    for (size_t i = 1; i < lod[0].size(); ++i) {
      const auto length = static_cast<int64_t>(lod[0][i] - lod[0][i - 1]);
      EXPECT_EQ(length, 3 - batch.feed("label").data<int64_t>()[i - 1]);
    }
  }
  EXPECT_EQ(texts, 18);
  EXPECT_EQ(data.naive_bayes_accuracy(), 1.0);
}

}  // namespace
}  // namespace skiff::models
