#include "models/seq2seq/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/text/pair_reader.h"
#include "models/seq2seq/network_file.h"
#include "models/seq2seq/seq2seq.h"
#include "models/seq2seq/translation_data.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"
#include "tests/models/seq2seq/unrolled_decoder.h"
#include "tests/models/seq2seq/variants.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;

// Trains on a few words that are turned around, multiplies all parameters by a number, and saves
// the model.
void SaveTrained(const Variant& variant, const std::string& directory, int epochs = 150,
                 float factor = 1) {
  const std::vector<text::TextPair> texts = {{"ab", "ba"}, {"cd", "dc"},   {"abc", "cba"},
                                             {"d", "d"},   {"dab", "bad"}, {"ca", "ac"}};
  std::vector<std::string> sides[2];
  for (const text::TextPair& text : texts) {
    sides[0].push_back(text.source);
    sides[1].push_back(text.target);
  }
  const auto source = text::TokenVocabulary::Of(sides[0], text::TokenKind::kCharacter, 100, 1);
  const auto target = text::TokenVocabulary::Of(sides[1], text::TokenKind::kCharacter, 100, 1);
  text::TokenPairs pairs;
  for (const text::TextPair& text : texts) {
    pairs.sources.push_back(source.Encode(text.source));
    pairs.targets.push_back(target.Encode(text.target));
  }
  training::OptimizationOptions optimization;
  optimization.optimizer = "adam";
  optimization.learning_rate = 0.02;
  Seq2SeqOptions options = {
      .source_tokens = source.size(), .target_tokens = target.size(), .embedding = 8, .hidden = 16};
  variant.set(&options);
  const training::TrainingProgram program = BuildSeq2Seq(options, optimization, 1);
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(*program.main);
  text::PairReader reader(&pairs, {.batch_size = 3, .shuffle = true});
  training::Batch batch;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    reader.StartEpoch(epoch);
    while (reader.Next(&batch)) step.Run(batch.feeds, {program.loss});
  }
  for (const std::string& name : PersistableNames(*program.test)) {
    for (float& value : executor.scope().FindMutable(name)->values<float>()) value *= factor;
  }
  SaveInferenceModel(directory, program.model_inputs, program.model_outputs, *program.model,
                     executor.scope(), {.files = {.params_filename = kCombinedParamsFile}});
  std::map<std::string, std::string> files = source.Files(text::kSourceSide);
  files.merge(target.Files(text::kTargetSide));
  for (const auto& [name, text] : files) AtomicWriteFile(JoinPath(directory, name), text);
  AtomicWriteFile(JoinPath(directory, kNetworkFile),
                  NetworkText({options, text::VocabularyChecksum(source, target)}));
}

class TranslatorOfVariant : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, TranslatorOfVariant, ::testing::ValuesIn(kVariants),
                         NameOfVariant);

TEST_P(TranslatorOfVariant, TranslatesTextsOfAllLengthsTogether) {
  const TempDirectory directory;
  SaveTrained(GetParam(), directory.path());
  for (const int64_t width : {1, 3}) {
    SCOPED_TRACE(StrCat("width ", width));
    Translator translator(directory.path(), {.width = width, .length_penalty = 0.6f});
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
}

class TranslatorTest : public ::testing::Test {
 protected:
  TranslatorTest() { SaveTrained(kVariants[0], directory_.path()); }

  TempDirectory directory_;
};

// By both programs: that of a beam picks the weights of the hypothesis that it has chosen.
TEST_F(TranslatorTest, SaysWhatEachTokenLookedAt) {
  const Translation greedy = Translator(directory_.path()).Translate({"dab"}, 20)[0];
  EXPECT_THAT(greedy.source_tokens, ElementsAre("d", "a", "b"));
  EXPECT_THAT(greedy.target_tokens, ElementsAre("b", "a", "d", "</s>"));
  ASSERT_THAT(greedy.attention, SizeIs(4));
  for (const std::vector<float>& weights : greedy.attention) {
    ASSERT_THAT(weights, SizeIs(3));
    EXPECT_THAT(weights, Each(::testing::Ge(0.0f)));
    EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-5);
  }
  Translator translator(directory_.path(), {.width = 4});
  const Translation of_beam = translator.Translate({"ab", "", "dab", "c"}, 20)[2];
  EXPECT_EQ(of_beam.target_tokens, greedy.target_tokens);
  ASSERT_THAT(of_beam.attention, SizeIs(4));
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_THAT(of_beam.attention[t], Pointwise(FloatNear(1e-5f), greedy.attention[t]));
  }
}

// What a network without any training finds often continues hypotheses that weren't the best.
TEST(TranslatorWithoutTraining, TheAttentionIsThatOfTheChosenHypothesis) {
  const TempDirectory directory;
  SaveTrained(kVariants[0], directory.path(), 0, 4);
  const std::string network = JoinPath(directory.path(), kNetworkFile);
  const auto target = text::TokenVocabulary::Load(directory.path(), text::kTargetSide);
  const auto source = text::TokenVocabulary::Load(directory.path(), text::kSourceSide);
  Executor executor;
  LoadInferenceModel(directory.path(), &executor.scope(), {.params_filename = kCombinedParamsFile});
  UnrolledDecoder decoder(&executor, ParseNetwork(BytesOf(network), network).options, 10);
  const std::vector<std::string> texts = {"ab", "cd", "abc", "d", "dab", "ca", "bcd", "dcab"};
  const std::vector<Translation> greedy = Translator(directory.path()).Translate(texts, 10);
  const std::vector<Translation> found =
      Translator(directory.path(), {.width = 4, .length_penalty = 1}).Translate(texts, 10);
  int others = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    others += found[i].text == greedy[i].text ? 0 : 1;
    std::vector<int64_t> tokens;
    ASSERT_EQ(found[i].attention.size(), found[i].target_tokens.size());
    for (size_t t = 0; t < found[i].attention.size(); ++t) {
      EXPECT_THAT(
          found[i].attention[t],
          Pointwise(FloatNear(1e-5f), decoder.After(source.Encode(texts[i]), tokens).attention));
      tokens.push_back(0);
      while (target.token(tokens.back()) != found[i].target_tokens[t]) ++tokens.back();
    }
  }
  EXPECT_GT(others, 0);
}

TEST_F(TranslatorTest, TranslatesTextsWithoutTokensToNothing) {
  for (const int64_t width : {1, 2}) {
    const std::vector<Translation> found =
        Translator(directory_.path(), {.width = width}).Translate({"", ""}, 20);
    ASSERT_THAT(found, SizeIs(2));
    EXPECT_EQ(found[1].text, "");
    EXPECT_THAT(found[1].attention, IsEmpty());
  }
}

TEST_F(TranslatorTest, EndsATranslationThatIsTooLong) {
  for (const int64_t width : {1, 2}) {
    Translator translator(directory_.path(), {.width = width});
    EXPECT_EQ(translator.Translate({"dab"}, 2)[0].text, "ba");
    EXPECT_THAT(InvalidArgumentText([&] { translator.Translate({"a"}, 0); }),
                HasSubstr("most_tokens = 0"));
  }
}

TEST_F(TranslatorTest, RefusesABeamThatCannotBe) {
  const auto refused = [&](const BeamOptions& beam) {
    return InvalidArgumentText([&] { Translator translator(directory_.path(), beam); });
  };
  EXPECT_THAT(refused({.width = 0}), HasSubstr("width = 0, expected at least 1"));
  EXPECT_THAT(refused({.width = 1'000'000'000'000}), HasSubstr("expected at most 1000"));
  EXPECT_THAT(refused({.width = 2, .length_penalty = -1}), HasSubstr("length_penalty = -1"));
}

TEST_F(TranslatorTest, ABeamNeedsTheFileOfTheNetwork) {
  const std::string path = JoinPath(directory_.path(), kNetworkFile);
  std::filesystem::remove(path);
  EXPECT_EQ(Translator(directory_.path()).Translate({"ab"}, 20)[0].text, "ba");
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound,
                        [&] { Translator translator(directory_.path(), {.width = 3}); }),
              HasSubstr(path + ": no such file, but a beam of 3 needs it"));
  AtomicWriteFile(path, "{");
  EXPECT_THAT(InvalidArgumentText([&] { Translator translator(directory_.path(), {.width = 3}); }),
              HasSubstr(path + ": byte 1: expected JSON"));
}

TEST_F(TranslatorTest, RefusesTheFileOfAnotherNetwork) {
  const std::string path = JoinPath(directory_.path(), kNetworkFile);
  const Seq2SeqOptions options = ParseNetwork(BytesOf(path), path).options;
  const auto refused = [&](const Seq2SeqOptions& other) {
    AtomicWriteFile(path, NetworkText({other, ""}));
    return InvalidArgumentText([&] { Translator translator(directory_.path(), {.width = 3}); });
  };
  Seq2SeqOptions wider = options;
  wider.hidden = 17;
  EXPECT_THAT(refused(wider), HasSubstr(path + ": the network's \""));
  Seq2SeqOptions deeper = options;
  deeper.layers = 2;
  EXPECT_THAT(refused(deeper), HasSubstr(path + ": the network has a parameter \"encoder2."));
  deeper.layers = 1'000'000'000'000;
  EXPECT_THAT(refused(deeper), HasSubstr("layers = 1000000000000, expected at most 1000"));
}

TEST_F(TranslatorTest, RefusesAVocabularyOfAnotherModel) {
  AtomicWriteFile(JoinPath(directory_.path(), "target_vocabulary.txt"),
                  "characters\n<s>\n</s>\n<unk>\nx\n");
  EXPECT_THAT(InvalidArgumentText([&] { Translator translator(directory_.path()); }),
              HasSubstr("the model's \"target.table\" has 7 tokens, the vocabulary has 4"));
}

// What a program in a saved model's folder returns is input.
class TranslatorOfAnotherProgram : public TranslatorTest {
 protected:
  // Saves a program with the feeds and tables of a translator that returns what `build` makes of
  // `one`, float32 [1, 1], and returns why its translation of "ab" is refused.
  std::string Refused(const std::function<std::vector<Variable>(const Variable& one)>& build) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable source = layers::Data("source", {-1}, DType::kInt64, {.lod_level = 1});
    const Variable room = layers::Data("room", {-1}, DType::kInt64);
    const auto sum = [](const Variable& x) {
      return layers::Reshape(layers::ReduceSum(layers::Cast(x, DType::kFloat32)), {1, 1});
    };
    const auto table = [&](const char* name) {
      return sum(layers::CreateParameter({7, 1}, DType::kFloat32, {.name = name}));
    };
    const Variable sums = sum(source) + sum(room) + table(kSourceTable) + table(kTargetTable);
    const std::vector<Variable> outputs = build(sums * 0.0 + 1.0);
    Executor executor;
    executor.Run(startup);
    SaveInferenceModel(directory_.path(), {"source", "room"}, {outputs.begin(), outputs.end()},
                       main, executor.scope(), {.files = {.params_filename = kCombinedParamsFile}});
    Translator translator(directory_.path());
    return InvalidArgumentText([&] { translator.Translate({"ab"}, 20); });
  }

  static Variable Integers(const Variable& x) { return layers::Cast(x, DType::kInt64); }
  // Returns x, [1, 1], so many times, as [rows, columns].
  static Variable Filled(const Variable& x, int64_t rows, int64_t columns) {
    return layers::Expand(x, {rows, columns});
  }
};

TEST_F(TranslatorOfAnotherProgram, IsRefused) {
  const std::string& path = directory_.path();
  EXPECT_EQ(Refused([](const Variable& one) {
              return std::vector{Integers(one * 7.0), Filled(one, 1, 2)};
            }),
            path + ": element 0 of the tokens is 7, expected 0 to 6");
  EXPECT_EQ(Refused([](const Variable& one) {
              return std::vector{one, Filled(one, 1, 2)};
            }),
            path + ": the tokens are float32 [1, 1], expected int64 [any, 1]");
  EXPECT_EQ(Refused([](const Variable& one) {
              return std::vector{Integers(Filled(one, 100'000, 1)), Filled(one, 1, 2)};
            }),
            path + ": the model wrote 100000 tokens, expected at most 20");
  EXPECT_EQ(Refused([](const Variable& one) {
              return std::vector{Integers(Filled(one, 5, 1)), Filled(one, 1, 2)};
            }),
            path + ": the weights are float32 [1, 2], expected float32 [5, 2]");
  EXPECT_EQ(Refused([](const Variable& one) {
              return std::vector{Integers(one), Filled(one * 2.0, 1, 2)};
            }),
            path + ": element 0 of the weights is 2, expected 0 to 1.001");
}

// With as many tokens, so that all sizes fit.
TEST_F(TranslatorTest, RefusesAVocabularyOfAnotherModelOfTheSameSize) {
  const std::string path = JoinPath(directory_.path(), "target_vocabulary.txt");
  const std::string text = BytesOf(path);
  std::string other = text;
  std::swap(other[other.size() - 2], other[other.size() - 4]);
  AtomicWriteFile(path, other);
  for (const int64_t width : {1, 3}) {
    EXPECT_THAT(
        InvalidArgumentText([&] { Translator translator(directory_.path(), {.width = width}); }),
        HasSubstr(directory_.path() + ": the vocabularies are those of another model"));
  }
  // A network's file of an earlier version says nothing of them.
  const std::string network = JoinPath(directory_.path(), kNetworkFile);
  AtomicWriteFile(network, NetworkText({ParseNetwork(BytesOf(network), network).options, ""}));
  EXPECT_EQ(Translator(directory_.path()).Translate({"cd"}, 20)[0].text, "cd");
  AtomicWriteFile(path, text);
  EXPECT_EQ(Translator(directory_.path()).Translate({"cd"}, 20)[0].text, "dc");
}

}  // namespace
}  // namespace skiff::models
