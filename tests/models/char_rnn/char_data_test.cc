#include "models/char_rnn/char_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

class CharDataTest : public ::testing::Test {
 protected:
  CharDataOptions FileOf(const std::string& text) const {
    const std::string path = JoinPath(directory_.path(), "text.txt");
    AtomicWriteFile(path, text);
    return {.data = path, .held_back = 0.25, .batch_size = 2, .steps = 3};
  }

  TempDirectory directory_;
};

TEST_F(CharDataTest, HoldsBackTheEnd) {
  const CharData data(FileOf("abababababababababababababcdcdcdcdcd"));
  EXPECT_EQ(data.extent(), "27 characters to train, 9 to validate, 4 different");
  EXPECT_EQ(data.alphabet().Text(), "abcd");
  training::Batch batch;
  ASSERT_TRUE(data.ValidationReader()->Next(&batch));
  // dcdcdcdcd: two streams of four characters.
  EXPECT_EQ(data.alphabet().Decode(batch.feed("ids").ToVector<int64_t>()), "ddccdd");
  EXPECT_EQ(data.TrainReader()->batches_in_epoch(), 5);
}

TEST_F(CharDataTest, GeneratedWorldHasBaselines) {
  const CharData data({});
  EXPECT_GT(data.bigram_loss(), 2.0);
  EXPECT_LT(data.bigram_loss(), 2.5);
  EXPECT_GT(data.trigram_loss(), 1.2);
  EXPECT_LT(data.trigram_loss(), 1.6);
  EXPECT_THAT(data.baselines(), HasSubstr("bigrams 2."));
}

TEST_F(CharDataTest, RefusesOtherTexts) {
  const auto message = [&](const CharDataOptions& options) {
    return InvalidArgumentText([&] { CharData data(options); });
  };
  EXPECT_THAT(message(FileOf("")), HasSubstr("text.txt: the text is empty"));
  EXPECT_THAT(message(FileOf("abab")), HasSubstr("text.txt, validation part"));
  CharDataOptions options = FileOf("abababababab");
  options.held_back = 0.75;
  options.batch_size = 8;
  EXPECT_THAT(message(options), HasSubstr("text.txt, training part"));
  for (const double share : {0.0, 1.0, -0.1}) {
    options.held_back = share;
    EXPECT_THAT(message(options), HasSubstr("expected a share in (0, 1)"));
  }
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [] { CharData data({.data = "no_such_file"}); }),
              HasSubstr("no_such_file"));
}

}  // namespace
}  // namespace skiff::models
