#include "models/ernie/mask_filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
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
#include "models/ernie/model_directory.h"
#include "models/ernie/pretraining.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A model with random weights, as a training would save it.
class MaskFillerTest : public ::testing::Test {
 protected:
  MaskFillerTest() { Save(vocabulary_); }

  void Save(const text::Vocabulary& vocabulary) {
    ErnieOptions options = ErniePreset("tiny");
    options.vocabulary = vocabulary_.size();
    const training::TrainingProgram program =
        BuildErniePretraining(options, {.length = 10, .masked = 2}, {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    SaveInferenceModel(directory_.path(), program.model_inputs, program.model_outputs,
                       *program.test, executor.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    for (const auto& [name, text] : ErnieModelFiles(options, vocabulary)) {
      AtomicWriteFile(JoinPath(directory_.path(), name), text);
    }
  }

  text::Vocabulary vocabulary_{
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "lives", "in", "rome", "."}};
  TempDirectory directory_;
};

TEST_F(MaskFillerTest, GuessesEachMaskBestFirst) {
  MaskFiller filler(directory_.path());
  const auto guesses = filler.Fill("anna lives in [MASK] [MASK]", 3);
  ASSERT_THAT(guesses, SizeIs(2));
  for (const auto& of_mask : guesses) {
    ASSERT_THAT(of_mask, SizeIs(3));
    EXPECT_GE(of_mask[0].probability, of_mask[1].probability);
    EXPECT_GE(of_mask[1].probability, of_mask[2].probability);
  }
}

TEST_F(MaskFillerTest, ProbabilitiesOfAllTokensAddUpToOne) {
  MaskFiller filler(directory_.path());
  const auto guesses = filler.Fill("[MASK] lives in rome", 100);
  double sum = 0;
  for (const MaskGuess& guess : guesses[0]) sum += guess.probability;
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(MaskFillerTest, RefusesTextsThatItCannotFillIn) {
  MaskFiller filler(directory_.path());
  const auto error = [&](const char* text, int64_t count = 3) {
    return InvalidArgumentText([&] { filler.Fill(text, count); });
  };
  EXPECT_THAT(error("anna lives in rome"), HasSubstr("the text has no [MASK]"));
  EXPECT_THAT(error(""), HasSubstr("the text has no [MASK]"));
  EXPECT_THAT(error("[MASK] [MASK] [MASK]"), HasSubstr("3 masks, and the model takes 2"));
  EXPECT_THAT(error("[MASK] anna anna anna anna anna anna anna anna"),
              HasSubstr("9 tokens, and the model takes 8"));
  EXPECT_THAT(error("[MASK]", 0), HasSubstr("expected at least 1"));
}

TEST_F(MaskFillerTest, RefusesAVocabularyOfAnotherSize) {
  Save(text::Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna"}));
  EXPECT_THAT(InvalidArgumentText([&] { MaskFiller filler(directory_.path()); }),
              HasSubstr("scores 10 tokens, and the vocabulary has 6"));
}

// What a program in a saved model's folder reads and returns is input.
TEST_F(MaskFillerTest, RefusesAnotherProgram) {
  struct Other {
    int64_t length = 10;
    int64_t masked = 2;
    std::vector<int64_t> dims = {2, 10};  // of the scores
    double scale = 1;
  };
  const auto save = [&](const Other& other) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable ids = layers::Data("token_ids", {-1, other.length}, DType::kInt64);
    const Variable places = layers::Data("masked_positions", {-1, other.masked}, DType::kInt64);
    const auto sum = [](const Variable& x) {
      return layers::Reshape(layers::ReduceSum(layers::Cast(x, DType::kFloat32)), {1, 1});
    };
    const Variable scores = layers::Expand(sum(ids) + sum(places), other.dims) * other.scale;
    SaveInferenceModel(directory_.path(), {"token_ids", "masked_positions"}, {scores}, main,
                       Scope(), {.files = {.params_filename = kCombinedParamsFile}});
  };
  const auto refused = [&](const Other& other) {
    save(other);
    return InvalidArgumentText([&] { MaskFiller(directory_.path()).Fill("anna [MASK]", 3); });
  };
  save({});
  EXPECT_THAT(MaskFiller(directory_.path()).Fill("anna [MASK]", 3), SizeIs(1));
  const std::string& path = directory_.path();
  EXPECT_EQ(refused({.dims = {1, 10}}),
            path + ": the scores are float32 [1, 10], expected float32 [2, 10]");
  EXPECT_THAT(refused({.dims = {2, 9}}), HasSubstr("the model scores 9 tokens"));
  EXPECT_THAT(refused({.scale = 1e38}), HasSubstr("of the scores is inf, expected -3.4"));
  EXPECT_THAT(refused({.length = -1}),
              HasSubstr("\"token_ids\" has the width -1, expected 1 to 1048576"));
  EXPECT_THAT(refused({.length = int64_t{1} << 40}), HasSubstr("has the width 1099511627776"));
  EXPECT_THAT(refused({.masked = int64_t{1} << 40}),
              HasSubstr("\"masked_positions\" has the width 1099511627776"));
}

}  // namespace
}  // namespace skiff::models
