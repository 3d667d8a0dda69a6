#include "models/ernie/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

class ModelDirectoryTest : public ::testing::Test {
 protected:
  ModelDirectoryTest() {
    options_.vocabulary = vocabulary_.size();
    for (const auto& [name, text] : ErnieModelFiles(options_, vocabulary_)) {
      PutBytes(directory_ / name, text);
    }
  }

  std::string OptionsError() {
    return ErrorText([&] { ReadErnieOptions(directory_.path(), vocabulary_); });
  }

  const text::Vocabulary vocabulary_{{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rome"}};
  ErnieOptions options_ = ErniePreset("mini");
  TempDirectory directory_;
};

TEST_F(ModelDirectoryTest, IsReadAsItWasWritten) {
  EXPECT_EQ(ReadErnieOptions(directory_.path(), vocabulary_), options_);
  EXPECT_EQ(ReadErnieVocabulary(directory_.path()).Text(), vocabulary_.Text());
}

TEST_F(ModelDirectoryTest, RefusesSizesOfAnotherVocabulary) {
  ++options_.vocabulary;
  PutBytes(directory_ / "config.json", ErnieOptionsToJson(options_));
  EXPECT_EQ(OptionsError(), directory_ / "config.json" +
                                ": vocab_size = 7: expected the 6 tokens of vocabulary.txt");
}

TEST_F(ModelDirectoryTest, SaysWhichFileIsWrong) {
  PutBytes(directory_ / "config.json", "{\"vocab_size\": 6, \"hidden_size\": \"wide\"}");
  EXPECT_EQ(OptionsError(),
            directory_ / "config.json" +
                ": configuration key \"hidden_size\": expected an integer, found \"wide\"");
  PutBytes(directory_ / "config.json", "{\"vocab_size\": 6, \"num_attention_heads\": 3}");
  EXPECT_THAT(OptionsError(), HasSubstr("config.json: ERNIE: hidden_size = 128: expected a "));
  std::filesystem::remove(directory_ / "config.json");
  EXPECT_THAT(OptionsError(), HasSubstr(directory_ / "config.json"));
  std::filesystem::remove(directory_ / "vocabulary.txt");
  EXPECT_THAT(ErrorText([&] { ReadErnieVocabulary(directory_.path()); }),
              HasSubstr(directory_ / "vocabulary.txt"));
}

}  // namespace
}  // namespace skiff::models
