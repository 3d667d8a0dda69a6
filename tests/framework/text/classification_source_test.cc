#include "framework/text/classification_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "framework/base/error.h"
#include "framework/training/sample_reader.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;
using training::Batch;
using training::SampleReader;

const Vocabulary kVocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"});

template <typename T>
std::vector<T> ValuesOf(const Batch& batch, const char* feed) {
  const std::span<const T> values = batch.feed(feed).values<T>();
  return {values.begin(), values.end()};
}

std::vector<int64_t> IdsOf(const std::string& text, const ClassificationOptions& options) {
  const std::vector<LabelledText> texts = {{.label = 0, .text = text}};
  const ClassificationSource source(Tokenizer(&kVocabulary), texts, options);
  SampleReader reader(&source, {.batch_size = 1});
  Batch batch;
  EXPECT_TRUE(reader.Next(&batch));
  return ValuesOf<int64_t>(batch, kTokenIds);
}

TEST(ClassificationSource, FeedsTextsAndLabels) {
  const std::vector<LabelledText> texts = {{.label = 1, .text = "a b"}, {.label = 0, .text = "c"}};
  const ClassificationSource source(Tokenizer(&kVocabulary), texts, {.length = 5, .task_id = 3});
  SampleReader reader(&source, {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kTokenIds), ElementsAre(2, 5, 6, 3, 0, 2, 7, 3, 0, 0));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kPositionIds), ElementsAre(0, 1, 2, 3, 0, 0, 1, 2, 0, 0));
  EXPECT_THAT(ValuesOf<float>(batch, kInputMask), ElementsAre(1, 1, 1, 1, 0, 1, 1, 1, 0, 0));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kSentenceIds), testing::Each(0));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kTaskIds), testing::Each(3));
  EXPECT_THAT(ValuesOf<int64_t>(batch, kLabel), ElementsAre(1, 0));
  EXPECT_EQ(batch.feed(kLabel).shape(), Shape({2, 1}));
}

TEST(ClassificationSource, KeepsTheStartOrBothEndsOfALongText) {
  EXPECT_THAT(IdsOf("a b c d a", {.length = 5}), ElementsAre(2, 5, 6, 7, 3));
  EXPECT_THAT(IdsOf("a b c d a", {.length = 5, .tail_tokens = 1}), ElementsAre(2, 5, 6, 5, 3));
  EXPECT_THAT(IdsOf("a b c d", {.length = 5, .tail_tokens = 3}), ElementsAre(2, 6, 7, 8, 3));
  EXPECT_THAT(IdsOf("a b c", {.length = 5, .tail_tokens = 1}), ElementsAre(2, 5, 6, 7, 3));
  EXPECT_THAT(IdsOf("", {.length = 4}), ElementsAre(2, 3, 0, 0));
}

TEST(ClassificationSource, RefusesOptionsThatLeaveNoText) {
  const std::vector<LabelledText> texts = {{.label = 0, .text = "a"}};
  const auto make = [&](const ClassificationOptions& options) {
    ClassificationSource(Tokenizer(&kVocabulary), texts, options);
  };
  ExpectError([&] { make({.length = 2}); }, ErrorCode::kInvalidArgument,
              "inputs of 2 tokens: expected at least 3");
  ExpectError([&] { make({.length = 8, .tail_tokens = 7}); }, ErrorCode::kInvalidArgument,
              "tail_tokens = 7: expected 0 to 6");
  ExpectError([&] { ClassificationSource(Tokenizer(&kVocabulary), {}, {}); },
              ErrorCode::kInvalidArgument, "no texts to classify");
}

class LabelledTextsTest : public ::testing::Test {
 protected:
  TempDirectory directory_;
  const std::string path_ = directory_ / "texts.tsv";
};

TEST_F(LabelledTextsTest, AreTheFirstAndTheLastColumn) {
  const std::string table = "1\tcv000\tgood film\r\n0\tbad\tfilm \n0\t\n";
  gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, table.data(), static_cast<unsigned>(table.size()));
  gzclose(file);
  const std::vector<LabelledText> texts = ReadLabelledTexts(path_);
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0].label, 1);
  EXPECT_EQ(texts[0].text, "good film");
  EXPECT_EQ(texts[1].text, "film ");
  EXPECT_EQ(texts[2].text, "");
}

TEST_F(LabelledTextsTest, SayWhichLineIsWrong) {
  PutBytes(path_, "1\ta\nno tab\n");
  ExpectError([&] { ReadLabelledTexts(path_); }, ErrorCode::kDataLoss,
              path_ + ":2 has no tab: expected label, tab, text");
  for (const std::string label : {"good", "-1", "10000", ""}) {
    PutBytes(path_, label + "\ta\n");
    ExpectError([&] { ReadLabelledTexts(path_); }, ErrorCode::kDataLoss,
                StrCat(path_, ":1: label \"", label, "\": expected a whole number from 0 to 9999"));
  }
  PutBytes(path_, "");
  ExpectError([&] { ReadLabelledTexts(path_); }, ErrorCode::kDataLoss,
              path_ + " is empty: expected labelled texts, one a line");
}

TEST_F(LabelledTextsTest, BeginBehindAByteOrderMark) {
  PutBytes(path_,
           "\xEF\xBB\xBF"
           "1\ta\n");
  EXPECT_EQ(ReadLabelledTexts(path_).at(0).label, 1);
}

TEST_F(LabelledTextsTest, SurviveMutations) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    PutBytes(path_, DamageBytes("1\tcv000\tgood film\r\n0\tbad\tfilm \n0\t\n", &random));
    try {
      for (const LabelledText& text : ReadLabelledTexts(path_)) EXPECT_LE(text.label, 9999);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    }
  }
}

TEST_F(LabelledTextsTest, TellTheNumberOfClasses) {
  const auto classes = [](const std::vector<int64_t>& labels) {
    std::vector<LabelledText> texts;
    for (const int64_t label : labels) texts.push_back({.label = label, .text = ""});
    return CountClasses(texts, "file");
  };
  EXPECT_EQ(classes({2, 0, 1, 1}), 3);
  ExpectError(
      [&] {
        classes({0, 2});
      },
      ErrorCode::kDataLoss, "file: no text has the label 1, but the highest is 2");
  ExpectError(
      [&] {
        classes({0, 0});
      },
      ErrorCode::kDataLoss, "file: texts of 1 class: expected at least 2");
}

TEST_F(LabelledTextsTest, ArePartsThatShareNoText) {
  PutBytes(path_, "1\ta\n1\tb\n0\tc\n1\td\n0\te\n");
  const LabelledParts parts = ReadLabelledParts(path_, 0.5);
  const auto words = [](const std::vector<LabelledText>& texts) {
    std::string all;
    for (const LabelledText& text : texts) all += text.text;
    return all;
  };
  EXPECT_EQ(parts.classes, 2);
  EXPECT_EQ(words(parts.train), "ac");
  EXPECT_EQ(words(parts.held_back), "bde");
}

TEST_F(LabelledTextsTest, NeedTwoTextsOfEachClassToBeHeldBack) {
  PutBytes(path_, "0\ta\n0\tb\n1\tc\n");
  ExpectError([&] { ReadLabelledParts(path_, 0.1); }, ErrorCode::kInvalidArgument,
              path_ +
                  ", label 1: cannot hold back a share of 0.1 of 1 examples: one has to be "
                  "left, and one held back");
  PutBytes(path_, "0\ta\n2\tb\n");
  ExpectError([&] { ReadLabelledParts(path_, 0.1); }, ErrorCode::kDataLoss,
              path_ + ": no text has the label 1, but the highest is 2");
}

TEST_F(LabelledTextsTest, RefuseAnEmptyLine) {
  PutBytes(path_, "0\ta\n\n1\tb\n");
  ExpectError([&] { ReadLabelledTexts(path_); }, ErrorCode::kDataLoss,
              path_ + ":2 has no tab: expected label, tab, text");
}

}  // namespace
}  // namespace skiff::text
