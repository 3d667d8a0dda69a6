#include "models/ernie/fine_tuning_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/io/file.h"
#include "models/ernie/model_directory.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

class FineTuningDataTest : public ::testing::Test {
 protected:
  // Twenty texts of each class, sorted by class. The last two of a class have a word of their own.
  FineTuningDataTest() {
    std::string table;
    for (const std::string label : {"0", "1"}) {
      for (int i = 0; i < 18; ++i) table += label + "\tthe cat sat on the mat\n";
      for (int i = 0; i < 2; ++i) table += label + "\tzebra zebra zebra\n";
    }
    options_ = {.data = Write("texts", table), .vocabulary_size = 100, .batch_size = 4};
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_ / name;
    PutBytes(path, text);
    return path;
  }

  std::string ErrorOf(const FineTuningDataOptions& options) {
    return ErrorText([&] { FineTuningData data(options); });
  }

  TempDirectory directory_;
  FineTuningDataOptions options_;
};

TEST_F(FineTuningDataTest, HoldsBackTheLastTextsOfEachClass) {
  const FineTuningData data(options_);
  EXPECT_EQ(data.extent(), "36 to train, 4 to validate, 2 classes, 0 texts cut to 64 tokens");
  EXPECT_EQ(data.TrainReader()->batches_in_epoch(), 9);
  const auto validation = data.ValidationReader();
  validation->StartEpoch(0);
  training::Batch batch;
  ASSERT_TRUE(validation->Next(&batch));
  EXPECT_THAT(batch.feed(text::kLabel).ToVector<int64_t>(), testing::ElementsAre(0, 0, 1, 1));
}

TEST_F(FineTuningDataTest, MakesTheVocabularyOfTheTrainingTexts) {
  const FineTuningData data(options_);
  EXPECT_TRUE(data.vocabulary().Find("mat").has_value());
  EXPECT_FALSE(data.vocabulary().Find("zebra").has_value());
}

TEST_F(FineTuningDataTest, TakesTheVocabularyOfTheInitialModel) {
  Write("vocabulary.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nzebra\n");
  options_.initial_model = directory_.path();
  EXPECT_EQ(FineTuningData(options_).vocabulary().size(), 6);
}

TEST_F(FineTuningDataTest, TakesTheVocabularyOfAFile) {
  options_.vocabulary_file = Write("tokens", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\n");
  EXPECT_TRUE(FineTuningData(options_).vocabulary().Find("cat").has_value());
  options_.vocabulary_file = "/nowhere";
  EXPECT_THAT(ErrorOf(options_), HasSubstr("/nowhere"));
}

TEST_F(FineTuningDataTest, RefusesWhatItCannotTrainOn) {
  const auto error = [this](const auto& change) {
    FineTuningDataOptions options = options_;
    change(&options);
    return ErrorOf(options);
  };
  EXPECT_THAT(error([](auto* o) { o->data = ""; }), HasSubstr("expected a file of labels"));
  EXPECT_THAT(error([](auto* o) { o->data = "/nowhere"; }), HasSubstr("/nowhere"));
  EXPECT_THAT(error([&](auto* o) { o->data = Write("empty", ""); }),
              HasSubstr("empty is empty: expected labelled texts"));
  EXPECT_THAT(error([&](auto* o) { o->data = Write("one", "0\ta\n0\tb\n"); }),
              HasSubstr("one: texts of 1 class: expected at least 2"));
  EXPECT_THAT(error([&](auto* o) { o->data = Write("gap", "0\ta\n2\tb\n"); }),
              HasSubstr("gap: no text has the label 1, but the highest is 2"));
  EXPECT_THAT(error([&](auto* o) { o->data = Write("line", "0\ta\n\n"); }),
              HasSubstr("line:2 has no tab"));
  EXPECT_THAT(error([&](auto* o) { o->data = Write("no_words", "0\t\n0\t\n1\t\n1\t\n"); }),
              HasSubstr("no_words: no words to make a vocabulary from"));
  EXPECT_THAT(error([](auto* o) { o->vocabulary_size = 10; }), HasSubstr("texts: "));
  EXPECT_THAT(error([](auto* o) { o->held_back = 1; }),
              HasSubstr("texts, label 0: cannot hold back a share of 1 of 20 examples"));
  EXPECT_THAT(error([](auto* o) { o->initial_model = "/nowhere"; }),
              HasSubstr("/nowhere/vocabulary.txt"));
}

TEST_F(FineTuningDataTest, TakesTextsWithoutWords) {
  options_.data = Write("some", "0\ta\n0\t\n1\t \n1\tb\n");
  EXPECT_THAT(FineTuningData(options_).extent(), HasSubstr("2 to train, 2 to validate"));
}

}  // namespace
}  // namespace skiff::models
