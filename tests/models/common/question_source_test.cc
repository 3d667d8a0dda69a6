#include "models/common/question_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/text/pretraining_source.h"
#include "framework/text/vocabulary_builder.h"
#include "framework/training/sample_reader.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

constexpr int64_t kLength = 32;
constexpr int64_t kMostMasked = 6;

template <typename T>
std::vector<T> ValuesOf(const training::Batch& batch, const char* feed) {
  return batch.feed(feed).ToVector<T>();
}

text::Vocabulary VocabularyOf(const WorldCorpus& corpus) {
  text::WordCounts words;
  for (const text::Document& document : corpus.documents) {
    for (const std::string& sentence : document) text::CountWords(sentence, {}, &words);
  }
  return text::BuildVocabulary(words, {.size = 1000});
}

class QuestionSourceTest : public ::testing::Test {
 protected:
  const WorldCorpus corpus_ = GenerateWorldCorpus({.documents = 300});
  const text::Vocabulary vocabulary_ = VocabularyOf(corpus_);
  const text::Tokenizer tokenizer_{&vocabulary_};
};

TEST_F(QuestionSourceTest, AsksQuestionsInTheSameFeeds) {
  const QuestionSource source(tokenizer_, corpus_.questions,
                              {.length = kLength, .most_masked = kMostMasked});
  EXPECT_EQ(source.fields(), text::PretrainingFields(kLength, kMostMasked));
  ASSERT_EQ(source.size(), static_cast<int64_t>(corpus_.questions.size()));
  training::SampleReader reader(&source, {.batch_size = source.size()});
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  const auto ids = ValuesOf<int64_t>(batch, text::kTokenIds);
  const auto positions = ValuesOf<int64_t>(batch, text::kMaskedPositions);
  const auto labels = ValuesOf<int64_t>(batch, text::kMaskedLabels);
  const auto weights = ValuesOf<float>(batch, text::kMaskedWeights);
  for (size_t row = 0; row < corpus_.questions.size(); ++row) {
    std::vector<text::TokenId> answer;
    for (size_t i = row * kMostMasked; i < (row + 1) * kMostMasked && weights[i] == 1; ++i) {
      EXPECT_EQ(ids[static_cast<size_t>(positions[i])], vocabulary_.mask());
      answer.push_back(static_cast<text::TokenId>(labels[i]));
    }
    EXPECT_EQ(answer, tokenizer_.Encode(corpus_.questions[row].answer).ids);
  }
  const auto masks = std::count(ids.begin(), ids.end(), vocabulary_.mask());
  EXPECT_EQ(masks, std::count(weights.begin(), weights.end(), 1.0f)) << "nothing else is masked";
}

TEST_F(QuestionSourceTest, RefusesQuestionsThatCannotBeAnswered) {
  const auto refusal = [&](const Question& question, const QuestionOptions& options) {
    const Error error = ErrorOf([&] { QuestionSource(tokenizer_, {&question, 1}, options); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  const Question question = {.before = "He is ", .answer = "好", .after = "."};
  EXPECT_EQ(refusal(question, {}),
            "the question \"He is [好].\": the vocabulary doesn't have the answer");
  const Question none = {.before = "He is ", .answer = "", .after = "."};
  EXPECT_EQ(refusal(none, {}),
            "the question \"He is [].\": the answer has 0 tokens, expected 1 to 20");
  const Question asked = {.before = "a a a ", .answer = "a", .after = "a"};
  EXPECT_EQ(refusal(asked, {.length = 6}),
            "the question \"a a a [a]a\": 7 tokens, expected at most 6");
}

}  // namespace
}  // namespace skiff::models
