#include "models/ernie/mask_filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

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

}  // namespace
}  // namespace skiff::models
