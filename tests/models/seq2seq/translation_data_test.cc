#include "models/seq2seq/translation_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

TEST(TranslationData, LeavesOutWhatIsTooLong) {
  const TempDirectory directory;
  const std::string path = JoinPath(directory.path(), "pairs");
  AtomicWriteFile(path, "ab\tba\nabcdef\tx\nc\tc\nd\td\n");
  const TranslationData data({.data = path, .held_back = 0.25, .longest = 3});
  EXPECT_EQ(data.extent(), "2 to train, 1 to validate (1 are too long), 9 and 7 tokens");
  AtomicWriteFile(path, StrCat(std::string(1 << 20, 'a'), "\tb\nc\td\n"));
  EXPECT_THAT(InvalidArgumentText([&] { TranslationData({.data = path, .held_back = 0.5}); }),
              HasSubstr("all pairs to train or to validate on have more than 100 tokens"));
}

TEST(TranslationData, PiecesAreThoseOfTheTrainingPairs) {
  const TempDirectory directory;
  const std::string path = JoinPath(directory.path(), "pairs");
  AtomicWriteFile(path, "low low\tab ab\nlower\tb\nlow xyz\tab\n");
  const TranslationData data({.data = path, .held_back = 0.34, .tokens = "bpe"});
  EXPECT_EQ(data.extent(), "2 to train, 1 to validate, 20 and 10 tokens");
  EXPECT_THAT(data.source().Text(), Not(HasSubstr("x")));
  EXPECT_THAT(data.VocabularyFiles(),
              ElementsAre(Key("source_pieces.model"), Key("source_vocabulary.txt"),
                          Key("target_pieces.model"), Key("target_vocabulary.txt")));
  EXPECT_EQ(TranslationData({.data = path, .held_back = 0.34, .tokens = "bpe"}).VocabularyFiles(),
            data.VocabularyFiles());
}

}  // namespace
}  // namespace skiff::models
