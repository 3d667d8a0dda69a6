#include "models/common/alphabet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Alphabet, NumbersCharactersInTheirOrder) {
  const Alphabet alphabet = Alphabet::Of("banana ß\n");
  EXPECT_EQ(alphabet.size(), 6);
  EXPECT_EQ(alphabet.Text(), "\n abnß");
  EXPECT_THAT(alphabet.Encode("ßan\n"), ElementsAre(5, 2, 4, 0));
  EXPECT_EQ(alphabet.Decode(std::vector<int64_t>{5, 2, 4, 0}), "ßan\n");
}

TEST(Alphabet, ParsesItsText) {
  const Alphabet alphabet = Alphabet::Parse(Alphabet::Of("hello,\r\n\tπ").Text());
  EXPECT_EQ(alphabet.Decode(alphabet.Encode("π\thello\r\n")), "π\thello\r\n");
}

TEST(Alphabet, RefusesOtherTexts) {
  EXPECT_THAT(InvalidArgumentText([] { Alphabet::Of("", "a.txt"); }),
              HasSubstr("a.txt: the text is empty"));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [] { Alphabet::Parse("", "a.txt"); }),
              HasSubstr("a.txt: found no characters"));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [] { Alphabet::Parse("aba", "a.txt"); }),
              HasSubstr("of 3 characters, only 2 are different"));
}

TEST(Alphabet, NamesWhatItDoesNotHave) {
  const Alphabet alphabet = Alphabet::Of("ab");
  EXPECT_THAT(InvalidArgumentText([&] { alphabet.Encode("abäb"); }),
              HasSubstr("character 2, \"ä\", is none of the 2 of the alphabet"));
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange,
                        [&] {
                          alphabet.Decode(std::vector<int64_t>{0, 2});
                        }),
              HasSubstr("character id 2: expected 0 to 1"));
}

}  // namespace
}  // namespace skiff::models
