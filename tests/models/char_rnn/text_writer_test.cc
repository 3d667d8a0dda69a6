#include "models/char_rnn/text_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
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
#include "models/char_rnn/char_rnn.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAll = "abcdefgh";

// With random weights.
class TextWriterTest : public ::testing::TestWithParam<const char*> {
 protected:
  TextWriterTest() {
    const std::string cell = GetParam();
    program_ = BuildCharRnn({.cell = cell,
                             .characters = std::ssize(std::string(kAll)),
                             .embedding = 8,
                             .hidden = 9,
                             .layers = 2},
                            1, {}, 3);
    executor_.Run(*program_.startup);
    // Larger ones, so that the probabilities differ.
    for (const auto& var : program_.main->root()->vars()) {
      if (!var->is_parameter) continue;
      std::vector<float> values = executor_.scope().Get(var->name).ToVector<float>();
      for (float& value : values) value *= 4;
      executor_.scope().Set(var->name, Tensor::FromValues<float>(Shape(var->dims), values));
    }
    SaveInferenceModel(directory_.path(), program_.model_inputs, program_.model_outputs,
                       *program_.model, executor_.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    SetAlphabet(kAll);
  }

  void SetAlphabet(const std::string& characters) {
    AtomicWriteFile(JoinPath(directory_.path(), kAlphabetFile), characters);
  }

  // The text that continues with the character of the lowest loss, by the training's own network.
  std::string Greedy(std::string text, size_t length) {
    const Alphabet alphabet = Alphabet::Parse(kAll);
    CompiledProgram test = executor_.Compile(*program_.test);
    std::string written;
    for (size_t i = 0; i < length; ++i) {
      const std::vector<int64_t> ids = alphabet.Encode(text);
      const int64_t n = std::ssize(ids);
      std::vector<int64_t> next(ids.begin() + 1, ids.end());
      next.push_back(0);
      std::vector<float> losses;
      for (next.back() = 0; next.back() < alphabet.size(); ++next.back()) {
        losses.push_back(test.Run({{"ids", Tensor::FromValues<int64_t>({n, 1}, ids)},
                                   {"label", Tensor::FromValues<int64_t>({n, 1, 1}, next)},
                                   {"carried", Tensor::FromValues<float>({1}, {0})}},
                                  {program_.loss})[0]
                             .Item<float>());
      }
      const std::vector<int64_t> best = {std::ranges::min_element(losses) - losses.begin()};
      written += alphabet.Decode(best);
      text += alphabet.Decode(best);
    }
    return written;
  }

  TempDirectory directory_;
  training::TrainingProgram program_;
  Executor executor_;
};

INSTANTIATE_TEST_SUITE_P(, TextWriterTest, ::testing::Values("lstm", "gru"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TextWriterTest, TakesTheMostProbableCharacter) {
  for (const std::string prompt : {"a", "hgfedc"}) {
    const std::string expected = Greedy(prompt, 20);
    EXPECT_GT(std::set<char>(expected.begin(), expected.end()).size(), 1u) << expected;
    for (const uint64_t seed : {1, 2}) {
      TextWriter writer(directory_.path(), seed);
      EXPECT_EQ(writer.Write(prompt, {.length = 20, .top_k = 1}), expected);
      EXPECT_EQ(writer.Write(prompt, {.length = 20, .temperature = 1e-3f}), expected);
    }
  }
}

TEST_P(TextWriterTest, DependsOnTheSeed) {
  TextWriter writer(directory_.path(), 5);
  const std::string text = writer.Write("ab", {.length = 100});
  EXPECT_EQ(text.size(), 100u);
  EXPECT_EQ(writer.Write("ab", {.length = 100}), text);
  EXPECT_EQ(TextWriter(directory_.path(), 5).Write("ab", {.length = 100}), text);
  EXPECT_NE(TextWriter(directory_.path(), 6).Write("ab", {.length = 100}), text);
  // A shorter text is the beginning of a longer one.
  EXPECT_EQ(writer.Write("ab", {.length = 7}), text.substr(0, 7));
}

TEST_P(TextWriterTest, DrawsByTheProbabilities) {
  // Of the first characters of many texts, the most probable one is the most frequent one.
  const std::string best = Greedy("cab", 1);
  std::map<std::string, int> seen;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    ++seen[TextWriter(directory_.path(), seed).Write("cab", {.length = 1})];
  EXPECT_GT(seen.size(), 2u);
  for (const auto& [text, count] : seen) EXPECT_LE(count, seen[best]) << text;
  std::set<std::string> of_two;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    of_two.insert(TextWriter(directory_.path(), seed).Write("cab", {.length = 1, .top_k = 2}));
  EXPECT_EQ(of_two.size(), 2u);
  EXPECT_TRUE(of_two.contains(best));
  // Hot enough, all characters are drawn.
  const std::string hot =
      TextWriter(directory_.path(), 1).Write("a", {.length = 300, .temperature = 1e6f});
  EXPECT_EQ(std::set<char>(hot.begin(), hot.end()).size(), 8u) << hot;
}

TEST_P(TextWriterTest, RefusesOtherArguments) {
  TextWriter writer(directory_.path(), 1);
  const auto message = [&](const std::string& prompt, const WriteOptions& options = {}) {
    return InvalidArgumentText([&] { writer.Write(prompt, options); });
  };
  EXPECT_THAT(message(""), HasSubstr("the prompt is empty"));
  EXPECT_THAT(message("abXa"), HasSubstr("the prompt: character 2, \"X\", is none of the 8"));
  EXPECT_THAT(message("a", {.length = 0}), HasSubstr("length = 0"));
  EXPECT_THAT(message("a", {.temperature = 0}), HasSubstr("temperature = 0"));
  EXPECT_THAT(message("a", {.top_k = -1}), HasSubstr("top_k = -1"));
  EXPECT_EQ(writer.Write("a", {.length = 5, .top_k = 8}), writer.Write("a", {.length = 5}));
  EXPECT_EQ(writer.Write("a", {.length = 5, .top_k = 99}), writer.Write("a", {.length = 5}));
}

TEST_P(TextWriterTest, RefusesOtherModels) {
  const auto message = [&] {
    return InvalidArgumentText([&] { TextWriter(directory_.path(), 1); });
  };
  SetAlphabet("abcdefghi");
  EXPECT_THAT(message(), HasSubstr("the model knows 8 characters, and alphabet.txt has 9"));
  SetAlphabet(kAll);
  SaveInferenceModel(directory_.path(), {"ids", "label", "carried"}, {program_.loss},
                     *program_.test, executor_.scope(),
                     {.files = {.params_filename = kCombinedParamsFile}});
  EXPECT_THAT(message(), HasSubstr("a model of ids, label, carried: expected one that writes"));
}

// What a program in a saved model's folder returns is input.
TEST_P(TextWriterTest, RefusesWhatIsNoCharacter) {
  const auto refused = [&](const std::function<Variable(const Variable&)>& build) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable prompt = layers::Data(kPrompt, {-1}, DType::kInt64);
    const Variable room = layers::Data(kRoom, {-1}, DType::kInt64);
    const Variable temperature = layers::Data(kTemperature, {1});
    const Variable top_k = layers::Data(kTopK, {1}, DType::kInt64);
    const Variable table =
        layers::CreateParameter({8, 1}, DType::kFloat32, {.name = kEmbeddingTable});
    const auto sum = [](const Variable& x) {
      return layers::Reshape(layers::ReduceSum(layers::Cast(x, DType::kFloat32)), {1});
    };
    const Variable sums = (sum(prompt) + temperature + sum(top_k) + sum(table)) * 0.0;
    const Variable written = build(layers::Cast(room, DType::kFloat32) + sums);
    Executor executor;
    executor.Run(startup);
    SaveInferenceModel(directory_.path(), {kPrompt, kRoom, kTemperature, kTopK}, {written}, main,
                       executor.scope(), {.files = {.params_filename = kCombinedParamsFile}});
    TextWriter writer(directory_.path(), 1);
    return InvalidArgumentText([&] { writer.Write("a", {.length = 3}); });
  };
  const std::string& path = directory_.path();
  EXPECT_EQ(refused([](const Variable& x) { return x; }),
            path + ": the characters are float32 [3], expected int64 [3]");
  EXPECT_EQ(refused([](const Variable& x) { return layers::Cast(x - 1.0, DType::kInt64); }),
            path + ": element 0 of the characters is -1, expected 0 to 7");
  EXPECT_EQ(refused([](const Variable& x) {
              return layers::Cast(layers::Reshape(x, {-1, 1}), DType::kInt64);
            }),
            path + ": the characters are int64 [3, 1], expected int64 [3]");
}

}  // namespace
}  // namespace skiff::models
