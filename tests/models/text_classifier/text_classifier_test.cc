#include "models/text_classifier/text_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "models/text_classifier/text_labeller.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kNetworks[] = {"cnn", "gru", "lstm"};

TextClassifierOptions Small(const std::string& network) {
  return {.network = network, .vocabulary = 20, .classes = 3, .embedding = 6, .hidden = 5};
}

FeedList Feeds(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> ids, labels;
  for (const int64_t length : lengths) {
    labels.push_back(std::ssize(labels) % 3);
    for (int64_t i = 0; i < length; ++i) ids.push_back((std::ssize(ids) * 7 + length) % 20);
  }
  Tensor feed = Tensor::FromValues<int64_t>({std::ssize(ids)}, ids);
  feed.set_lod({OffsetsOf(lengths)});
  return {{"ids", feed}, {"label", Tensor::FromValues<int64_t>({std::ssize(labels), 1}, labels)}};
}

TEST(TextClassifier, TextsOfOneBatchDoNotMix) {
  for (const std::string network : kNetworks) {
    SCOPED_TRACE(network);
    const training::TrainingProgram program = BuildTextClassifier(Small(network), {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    const auto probabilities = [&](const std::vector<std::pair<std::string, Tensor>>& feeds) {
      return executor.Run(*program.test, feeds, {program.model_outputs[0]})[0].ToVector<float>();
    };
    const FeedList both = Feeds({7, 2});
    const std::vector<float> together = probabilities(both);
    ASSERT_THAT(together, SizeIs(6));
    Tensor first = both[0].second.Rows(0, 7);
    first.set_lod({{0, 7}});
    const FeedList alone = {{"ids", first}, {"label", Tensor::FromValues<int64_t>({1, 1}, {0})}};
    const std::vector<float> by_itself = probabilities(alone);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(together[i], by_itself[i], 1e-6);
  }
}

TEST(TextClassifier, GivesTheSameWithEveryPass) {
  for (const std::string network : kNetworks) {
    training::TrainingProgram program = BuildTextClassifier(Small(network), {}, 1);
    harness::Workload workload{.name = "text_" + network};
    const FetchList fetches = {program.loss, "embedding_0.w_0@GRAD"};
    workload.startup = std::move(program.startup);
    workload.runs = {{0, Feeds({3, 1, 4}), fetches},
                     {1, Feeds({2, 5}), {program.loss, program.model_outputs[0]}},
                     {0, Feeds({1, 3, 4}), fetches},
                     {0, Feeds({9}), {program.loss}}};
    workload.programs = {std::move(program.main), std::move(program.test)};
    EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty()) << network;
  }
}

TEST(TextClassifier, ConvolutionsStartWithLargeEmbeddings) {
  const auto largest = [](const std::string& network) {
    const TextClassifierOptions options{.network = network, .vocabulary = 8000, .hidden = 2};
    const training::TrainingProgram program = BuildTextClassifier(options, {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    float most = 0;
    for (const float value : executor.scope().Get("embedding_0.w_0").ToVector<float>())
      most = std::max(most, std::abs(value));
    return most;
  };
  EXPECT_NEAR(largest("cnn"), 0.15f, 1e-3f);
  const float xavier = std::sqrt(6.0f / (8000 + 128));
  EXPECT_NEAR(largest("gru"), xavier, 1e-3f);
  EXPECT_NEAR(largest("lstm"), xavier, 1e-3f);
}

TEST(TextClassifier, RefusesWhatIsNoNetwork) {
  const auto message = [](const TextClassifierOptions& options) {
    return InvalidArgumentText([&] { BuildTextClassifier(options, {}, 1); });
  };
  EXPECT_THAT(message({.network = "rnn", .vocabulary = 9}),
              HasSubstr("network = \"rnn\", expected cnn, gru or lstm"));
  EXPECT_THAT(message({.vocabulary = 0}), HasSubstr("vocabulary = 0, expected at least 1"));
  EXPECT_THAT(message({.vocabulary = 9, .classes = 1}), HasSubstr("classes = 1"));
  EXPECT_THAT(message({.vocabulary = 9, .hidden = int64_t{1} << 62}),
              HasSubstr("hidden = 4611686018427387904, expected at most 2147483647"));
}

// With random weights.
class TextLabellerTest : public ::testing::Test {
 protected:
  void Save(const TextClassifierOptions& options) {
    const training::TrainingProgram program = BuildTextClassifier(options, {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    SaveInferenceModel(directory_.path(), program.model_inputs, program.model_outputs,
                       *program.test, executor.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    AtomicWriteFile(JoinPath(directory_.path(), kVocabularyFile), vocabulary_.Text());
  }

  // Saves what `build` makes of ids, [tokens] and ragged, as float32 [tokens, 1].
  void SaveOther(const std::function<Variable(const Variable&)>& build) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable ids = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
    const Variable numbers = layers::Reshape(layers::Cast(ids, DType::kFloat32), {-1, 1});
    SaveInferenceModel(directory_.path(), {"ids"}, {build(numbers)}, main, Scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    AtomicWriteFile(JoinPath(directory_.path(), kVocabularyFile), vocabulary_.Text());
  }

  text::Vocabulary vocabulary_{{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad"}};
  TempDirectory directory_;
};

TEST_F(TextLabellerTest, ClassifiesEachText) {
  Save({.vocabulary = 7, .classes = 3, .embedding = 4, .hidden = 4});
  TextLabeller labeller(directory_.path());
  const auto found = labeller.Classify({"good bad good", "", "bad"});
  ASSERT_THAT(found, SizeIs(3));
  for (const auto& probabilities : found) {
    ASSERT_THAT(probabilities, SizeIs(3));
    EXPECT_NEAR(probabilities[0] + probabilities[1] + probabilities[2], 1, 1e-6);
  }
  EXPECT_EQ(labeller.Classify({"bad"})[0], found[2]);
  EXPECT_THAT(labeller.Classify({}), IsEmpty());
}

// What a program in a saved model's folder returns is input.
TEST_F(TextLabellerTest, RefusesWhatIsNoClassProbability) {
  const auto refused = [&](const std::function<Variable(const Variable&)>& build) {
    SaveOther(build);
    TextLabeller labeller(directory_.path());
    return InvalidArgumentText([&] { labeller.Classify({"good"}); });
  };
  const std::string found = directory_.path() + ": the probabilities are ";
  EXPECT_EQ(refused([](const Variable& x) { return layers::Reshape(x, {-1}); }),
            found + "float32 [1] with a LoD, expected a dense float32 [1, any]");
  const auto of_text = [](const Variable& x) { return layers::SequencePool(x, "SUM"); };
  const auto empty = [&](const Variable& x, int64_t axis) {
    return layers::Slice(of_text(x), {.axes = {axis}, .starts = {0}, .ends = {0}});
  };
  EXPECT_EQ(refused([&](const Variable& x) { return empty(x, 0); }),
            found + "float32 [0, 1] without elements, expected float32 [1, any]");
  EXPECT_EQ(refused([&](const Variable& x) { return empty(x, 1); }),
            found + "float32 [1, 0] without elements, expected float32 [1, any]");
  EXPECT_EQ(refused([&](const Variable& x) { return layers::Cast(of_text(x), DType::kInt64); }),
            found + "int64 [1, 1], expected float32 [1, any]");
  EXPECT_EQ(refused(of_text),
            directory_.path() + ": element 0 of the probabilities is 5, expected 0 to 1.001");
  EXPECT_EQ(refused([&](const Variable& x) { return layers::Log(of_text(x) * 0.0 - 1.0); }),
            directory_.path() + ": element 0 of the probabilities is nan, expected 0 to 1.001");
}

}  // namespace
}  // namespace skiff::models
