#include "models/common/world_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> SentencesOf(const WorldCorpus& corpus) {
  std::set<std::string> sentences;
  for (const text::Document& document : corpus.documents) {
    sentences.insert(document.begin(), document.end());
  }
  return sentences;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Entity& EntityCalled(const WorldCorpus& corpus, const std::string& name) {
  const auto found = std::find_if(corpus.entities.begin(), corpus.entities.end(),
                                  [&](const Entity& entity) { return entity.name == name; });
  EXPECT_NE(found, corpus.entities.end()) << name;
  return *found;
}

TEST(WorldCorpus, TellsSeveralHundredFactsInSentences) {
  const WorldCorpus corpus = GenerateWorldCorpus({});
  EXPECT_EQ(corpus.documents.size(), 2000u);
  EXPECT_EQ(corpus.questions.size(), 400u);
  EXPECT_EQ(corpus.facts, 80 * 6 + 12 + 36 * 2);
  for (const text::Document& document : corpus.documents) {
    EXPECT_GE(document.size(), 2u);
    EXPECT_LE(document.size(), 7u);
    for (const std::string& sentence : document) {
      EXPECT_TRUE(sentence.front() >= 'A' && sentence.front() <= 'Z') << sentence;
      EXPECT_TRUE(sentence.ends_with('.')) << sentence;
      EXPECT_THAT(sentence, Not(HasSubstr("{"))) << "a place that was not filled";
    }
  }
}

TEST(WorldCorpus, AsksInSentencesThatNoDocumentHas) {
  const WorldCorpus corpus = GenerateWorldCorpus({});
  const std::set<std::string> sentences = SentencesOf(corpus);
  for (const Question& question : corpus.questions) {
    const std::string sentence = question.before + question.answer + question.after;
    EXPECT_FALSE(sentences.contains(sentence)) << sentence;
    EXPECT_GE(question.times_told, 1) << sentence;
    EXPECT_EQ(EntityCalled(corpus, question.answer).type, question.type) << sentence;
  }
}

// The fact is there all the same: a sentence with both entities, in other words.
TEST(WorldCorpus, TellsTheAnswersInOtherWords) {
  const WorldCorpus corpus = GenerateWorldCorpus({});
  const std::set<std::string> sentences = SentencesOf(corpus);
  int64_t told_by_name = 0;
  for (const Question& question : corpus.questions) {
    std::string subject;
    for (const Entity& entity : corpus.entities) {
      if (Contains(question.before + "_" + question.after, entity.name)) subject = entity.name;
    }
    ASSERT_NE(subject, "") << question.before;
    const bool told = std::any_of(sentences.begin(), sentences.end(), [&](const auto& sentence) {
      return Contains(sentence, subject) && Contains(sentence, question.answer);
    });
    told_by_name += told ? 1 : 0;
  }
  // The others are told by pronoun alone.
  EXPECT_GE(told_by_name, 396);
}

TEST(WorldCorpus, UsesTheWordingsOfQuestionsForOtherFacts) {
  const WorldCorpus corpus = GenerateWorldCorpus({});
  const auto asked = std::find_if(
      corpus.questions.begin(), corpus.questions.end(),
      [](const Question& question) { return question.before.starts_with("The capital of "); });
  ASSERT_NE(asked, corpus.questions.end());
  const std::set<std::string> sentences = SentencesOf(corpus);
  EXPECT_TRUE(std::any_of(sentences.begin(), sentences.end(), [](const std::string& sentence) {
    return sentence.starts_with("The capital of ");
  }));
}

TEST(WorldCorpus, HasOneAnswerToAQuestion) {
  const WorldCorpus corpus = GenerateWorldCorpus({.questions = 100000});
  std::map<std::string, std::string> answers;
  for (const Question& question : corpus.questions) {
    const auto [entry, is_new] =
        answers.emplace(question.before + "_" + question.after, question.answer);
    EXPECT_EQ(entry->second, question.answer) << entry->first;
  }
  EXPECT_EQ(static_cast<int64_t>(corpus.questions.size()), corpus.facts);
}

TEST(WorldCorpus, CountsItsMentions) {
  const WorldCorpus corpus = GenerateWorldCorpus({.documents = 200});
  for (const char* name : {"Redwater", "goulash", "Andoria", "clock maker", "guinea pig"}) {
    int64_t mentions = 0;
    for (const text::Document& document : corpus.documents) {
      for (const std::string& sentence : document) mentions += Contains(sentence, name) ? 1 : 0;
    }
    EXPECT_EQ(EntityCalled(corpus, name).mentions, mentions) << name;
  }
}

TEST(WorldCorpus, NamesNoEntityTwice) {
  const WorldCorpus corpus = GenerateWorldCorpus({.people = 120});
  const std::vector<std::string> lexicon = corpus.Lexicon();
  const std::set<std::string> names(lexicon.begin(), lexicon.end());
  EXPECT_EQ(names.size(), lexicon.size());
  EXPECT_EQ(lexicon.size(), 120u + 36 + 12 + 24 + 24 + 16);
}

TEST(WorldCorpus, DependsOnItsOptionsAlone) {
  const WorldCorpus corpus = GenerateWorldCorpus({.documents = 50});
  EXPECT_EQ(GenerateWorldCorpus({.documents = 50}).documents, corpus.documents);
  EXPECT_NE(GenerateWorldCorpus({.documents = 50, .seed = 2}).documents, corpus.documents);
  // More documents are more about the same world.
  const WorldCorpus longer = GenerateWorldCorpus({.documents = 60});
  EXPECT_TRUE(
      std::equal(corpus.documents.begin(), corpus.documents.end(), longer.documents.begin()));
}

TEST(WorldCorpus, CannotBeAnsweredByFrequency) {
  const FrequencyBaseline baseline = MeasureFrequencyBaseline(GenerateWorldCorpus({}));
  EXPECT_LT(baseline.any_entity, 0.03);
  EXPECT_GT(baseline.same_type, baseline.any_entity);
  EXPECT_LT(baseline.same_type, 0.12);
}

TEST(FrequencyBaseline, CountsTheQuestionsThatAConstantAnswerGetsRight) {
  const WorldCorpus corpus = {.documents = {},
                              .entities = {{"Emma", EntityType::kPerson, 9},
                                           {"tea", EntityType::kFood, 2},
                                           {"rice", EntityType::kFood, 5}},
                              .questions = {{"", "Emma", "", EntityType::kPerson, 1},
                                            {"", "tea", "", EntityType::kFood, 1},
                                            {"", "rice", "", EntityType::kFood, 1},
                                            {"", "rice", "", EntityType::kFood, 1}}};
  EXPECT_EQ(MeasureFrequencyBaseline(corpus).any_entity, 0.25);
  EXPECT_EQ(MeasureFrequencyBaseline(corpus).same_type, 0.75);
  ExpectError([] { MeasureFrequencyBaseline({}); }, ErrorCode::kInvalidArgument,
              "a corpus without questions");
}

TEST(WorldCorpus, RefusesOptionsOutsideItsWorld) {
  ExpectError([] { GenerateWorldCorpus({.people = 7}); }, ErrorCode::kInvalidArgument,
              "people = 7: expected an even number from 2 to 120");
  ExpectError([] { GenerateWorldCorpus({.people = 122}); }, ErrorCode::kInvalidArgument,
              "people = 122: expected an even number from 2 to 120");
  ExpectError([] { GenerateWorldCorpus({.documents = 0}); }, ErrorCode::kInvalidArgument,
              "documents = 0, questions = 400: expected at least one document, and no negative "
              "number");
}

}  // namespace
}  // namespace skiff::models
