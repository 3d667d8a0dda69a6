#include "models/seq2seq/seq2seq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "models/seq2seq/pair_reader.h"
#include "models/seq2seq/translation_data.h"
#include "models/seq2seq/translator.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Sequences = std::vector<std::vector<int64_t>>;

Seq2SeqOptions Small() {
  return {.source_tokens = 9, .target_tokens = 8, .embedding = 4, .hidden = 5};
}

// Feeds of a batch of these pairs.
FeedList Feeds(const Sequences& sources, const Sequences& targets) {
  const TokenPairs pairs{.sources = sources, .targets = targets};
  PairReader reader(&pairs, {});
  training::Batch batch;
  reader.Next(&batch);
  return batch.feeds;
}

TEST(Seq2Seq, GivesTheSameWithEveryPass) {
  training::TrainingProgram program = BuildSeq2Seq(Small(), {}, 1);
  harness::Workload workload{.name = "seq2seq"};
  const FetchList fetches = {program.loss, std::string(kSourceTable) + "@GRAD"};
  workload.startup = std::move(program.startup);
  workload.runs = {{0, Feeds({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7}}), fetches},
                   {1, Feeds({{3, 4}, {8, 8, 8}}, {{7}, {5, 3}}), {program.loss}},
                   {0, Feeds({{7, 8, 3, 4}}, {{3, 4, 5, 6}}), fetches},
                   {0, Feeds({{3}, {4}, {5, 6}}, {{3}, {4}, {5}}), {program.loss}}};
  workload.programs = {std::move(program.main), std::move(program.test)};
  EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty());
}

// A pair has the same loss beside others, shorter and longer ones, as by itself.
TEST(Seq2Seq, PairsOfOneBatchDoNotMix) {
  const training::TrainingProgram program = BuildSeq2Seq(Small(), {}, 1);
  Executor executor;
  executor.Run(*program.startup);
  const auto loss = [&](const Sequences& sources, const Sequences& targets) {
    return executor.Run(*program.test, Feeds(sources, targets), {program.loss})[0].Item<float>();
  };
  // Means over tokens, of which each target has one more than it says: its end.
  const float first = loss({{3, 4, 5}}, {{3, 4}});
  const float second = loss({{6}}, {{5, 6, 7, 3}});
  EXPECT_NEAR(loss({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7, 3}}), (3 * first + 5 * second) / 8, 1e-6);
  EXPECT_NEAR(loss({{6}, {3, 4, 5}}, {{5, 6, 7, 3}, {3, 4}}), (3 * first + 5 * second) / 8, 1e-6);
}

TEST(Seq2Seq, RefusesSizesThatCannotBe) {
  Seq2SeqOptions options = Small();
  options.hidden = 0;
  EXPECT_THAT(InvalidArgumentText([&] { BuildSeq2Seq(options, {}, 1); }),
              HasSubstr("hidden = 0, expected at least 1"));
}

// Trains on a few words that are turned around, and saves the model.
class TranslatorTest : public ::testing::Test {
 protected:
  TranslatorTest() {
    const std::vector<TextPair> texts = {{"ab", "ba"}, {"cd", "dc"},   {"abc", "cba"},
                                         {"d", "d"},   {"dab", "bad"}, {"ca", "ac"}};
    std::vector<std::string> sides[2];
    for (const TextPair& text : texts) {
      sides[0].push_back(text.source);
      sides[1].push_back(text.target);
    }
    const auto source = TokenVocabulary::Of(sides[0], TokenKind::kCharacter, 100, 1);
    const auto target = TokenVocabulary::Of(sides[1], TokenKind::kCharacter, 100, 1);
    for (const TextPair& text : texts) {
      pairs_.sources.push_back(source.Encode(text.source));
      pairs_.targets.push_back(target.Encode(text.target));
    }
    training::OptimizationOptions optimization;
    optimization.optimizer = "adam";
    optimization.learning_rate = 0.02;
    const training::TrainingProgram program = BuildSeq2Seq({.source_tokens = source.size(),
                                                            .target_tokens = target.size(),
                                                            .embedding = 8,
                                                            .hidden = 16},
                                                           optimization, 1);
    Executor executor;
    executor.Run(*program.startup);
    CompiledProgram step = executor.Compile(*program.main);
    PairReader reader(&pairs_, {.batch_size = 3, .shuffle = true});
    training::Batch batch;
    for (int epoch = 0; epoch < 150; ++epoch) {
      reader.StartEpoch(epoch);
      while (reader.Next(&batch)) step.Run(batch.feeds, {program.loss});
    }
    SaveInferenceModel(directory_.path(), program.model_inputs, program.model_outputs,
                       *program.model, executor.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    AtomicWriteFile(JoinPath(directory_.path(), kSourceVocabularyFile), source.Text());
    AtomicWriteFile(JoinPath(directory_.path(), kTargetVocabularyFile), target.Text());
  }

  TempDirectory directory_;
  TokenPairs pairs_;
};

TEST_F(TranslatorTest, TranslatesTextsOfAllLengthsTogether) {
  Translator translator(directory_.path());
  const std::vector<Translation> found = translator.Translate({"ab", "", "dab", "d"}, 20);
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_EQ(found[0].text, "ba");
  EXPECT_EQ(found[1].text, "");
  EXPECT_EQ(found[2].text, "bad");
  EXPECT_EQ(found[3].text, "d");
  // One after the other, they are the same.
  for (const std::string text : {"ab", "dab", "d"}) {
    EXPECT_EQ(translator.Translate({text}, 20)[0].text, std::string(text.rbegin(), text.rend()));
  }
}

TEST_F(TranslatorTest, SaysWhatEachTokenLookedAt) {
  const Translation translation = Translator(directory_.path()).Translate({"dab"}, 20)[0];
  EXPECT_THAT(translation.source_tokens, ElementsAre("d", "a", "b"));
  EXPECT_THAT(translation.target_tokens, ElementsAre("b", "a", "d", "</s>"));
  ASSERT_THAT(translation.attention, SizeIs(4));
  for (const std::vector<float>& weights : translation.attention) {
    ASSERT_THAT(weights, SizeIs(3));
    EXPECT_THAT(weights, Each(::testing::Ge(0.0f)));
    EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-5);
  }
}

TEST_F(TranslatorTest, EndsATranslationThatIsTooLong) {
  Translator translator(directory_.path());
  EXPECT_EQ(translator.Translate({"dab"}, 2)[0].text, "ba");
  EXPECT_THAT(InvalidArgumentText([&] { translator.Translate({"a"}, 0); }),
              HasSubstr("most_tokens = 0"));
}

TEST_F(TranslatorTest, RefusesAVocabularyOfAnotherModel) {
  AtomicWriteFile(JoinPath(directory_.path(), kTargetVocabularyFile),
                  "characters\n<s>\n</s>\n<unk>\nx\n");
  EXPECT_THAT(InvalidArgumentText([&] { Translator translator(directory_.path()); }),
              HasSubstr("the model's \"target.table\" has 7 tokens, the vocabulary has 4"));
}

}  // namespace
}  // namespace skiff::models
