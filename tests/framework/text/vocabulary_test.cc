#include "framework/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

constexpr char kSpecialLines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

class VocabularyTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    PutBytes(path_, bytes);
    return path_;
  }
  void ExpectRefused(const std::string& bytes, ErrorCode code, const std::string& message) {
    Write(bytes);
    ExpectError([&] { ReadVocabulary(path_); }, code, path_ + message);
  }

  TempDirectory directory_;
  const std::string path_ = directory_ / "vocabulary.txt";
};

TEST_F(VocabularyTest, ReadsOneTokenALine) {
  const Vocabulary vocabulary = ReadVocabulary(Write(StrCat(kSpecialLines, "the\n##s\n好")));
  EXPECT_EQ(vocabulary.size(), 8);
  EXPECT_EQ(vocabulary.token(5), "the");
  EXPECT_EQ(vocabulary.Find("好"), 7);
  EXPECT_EQ(vocabulary.Find("unheard"), std::nullopt);
  EXPECT_EQ(vocabulary.pad(), 0);
  EXPECT_EQ(vocabulary.unknown(), 1);
  EXPECT_EQ(vocabulary.mask(), 4);
}

TEST_F(VocabularyTest, ReadsNumberedTokensInAnyOrder) {
  const Vocabulary vocabulary =
      ReadVocabulary(Write("[PAD]\t0\n[CLS]\t1\n[SEP]\t2\n[MASK]\t3\n,\t6\n[UNK]\t5\nthe\t4\n"));
  EXPECT_EQ(vocabulary.token(4), "the");
  EXPECT_EQ(vocabulary.token(6), ",");
  EXPECT_EQ(vocabulary.cls(), 1);
  EXPECT_EQ(vocabulary.sep(), 2);
  EXPECT_EQ(vocabulary.mask(), 3);
  EXPECT_EQ(vocabulary.unknown(), 5);
}

TEST_F(VocabularyTest, TakesTheLineEndsOfOtherSystems) {
  const Vocabulary vocabulary =
      ReadVocabulary(Write("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nthe\r\n"));
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.Find("the"), 5);
}

TEST_F(VocabularyTest, IsTheSameAfterSaving) {
  const Vocabulary vocabulary =
      ReadVocabulary(Write("[PAD]\t1\n[CLS]\t0\n[SEP]\t2\n[MASK]\t3\n"
                           "[UNK]\t4\n##é\t6\na\t5\n"));
  const std::string saved = directory_ / "saved.txt";
  SaveVocabulary(vocabulary, saved);
  EXPECT_EQ(BytesOf(saved), "[CLS]\n[PAD]\n[SEP]\n[MASK]\n[UNK]\na\n##é\n");
  EXPECT_EQ(ReadVocabulary(saved).Text(), vocabulary.Text());
}

TEST_F(VocabularyTest, CopiesAreIndependent) {
  auto original = std::make_unique<Vocabulary>(ReadVocabulary(Write(kSpecialLines)));
  const Vocabulary copy = *original;
  original.reset();
  EXPECT_EQ(copy.Find("[MASK]"), 4);
  EXPECT_EQ(copy.token(4), "[MASK]");
}

TEST_F(VocabularyTest, SaysWhichSpecialTokenIsMissing) {
  ExpectRefused("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", ErrorCode::kNotFound,
                " has no token [MASK]: expected [PAD], [UNK], [CLS], [SEP], [MASK] among its 5 "
                "tokens");
}

TEST_F(VocabularyTest, RefusesAnEmptyFile) {
  ExpectRefused("", ErrorCode::kDataLoss, " is empty: expected a vocabulary");
  ExpectRefused("\n", ErrorCode::kDataLoss, ": the token of id 0 is empty");
}

// As in published vocabularies.
TEST_F(VocabularyTest, WarnsOfATokenThatIsThereTwice) {
  testing::internal::CaptureStderr();
  const Vocabulary vocabulary =
      ReadVocabulary(Write(StrCat(kSpecialLines, "a\n$\nb\n$\nc\n[PAD]\n")));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: " + path_ +
                ": \"[PAD]\" is there twice, as id 0 and as id 10: the last one counts (and 1 more "
                "such ids)\n");
  std::vector<TokenId> found;
  for (const char* token : {"a", "$", "b", "c", "[PAD]"}) found.push_back(*vocabulary.Find(token));
  EXPECT_EQ(found, (std::vector<TokenId>{5, 8, 7, 9, 10}));
  EXPECT_EQ(vocabulary.pad(), 10);
  EXPECT_EQ(vocabulary.token(6), "$");
  testing::internal::CaptureStderr();
  ReadVocabulary(Write(kSpecialLines));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(VocabularyTest, BeginsBehindAByteOrderMark) {
  EXPECT_EQ(ReadVocabulary(Write(StrCat("\xEF\xBB\xBF", kSpecialLines))).pad(), 0);
}

TEST_F(VocabularyTest, SaysWhereIdsAreNotDense) {
  ExpectRefused("[PAD]\t0\n[CLS]\t1\n[SEP]\t1\n", ErrorCode::kDataLoss,
                ":3: id 1 of \"[SEP]\" belongs to \"[CLS]\" in line 2");
  ExpectRefused("[PAD]\t0\n[CLS]\t2\n", ErrorCode::kDataLoss,
                ":2: id 2 of \"[CLS]\": the file has 2 tokens, so the ids have to be 0 to 1");
  ExpectRefused("[PAD]\t0\n[CLS]\t-1\n", ErrorCode::kDataLoss,
                ":2: id -1 of \"[CLS]\": the file has 2 tokens, so the ids have to be 0 to 1");
}

TEST_F(VocabularyTest, RefusesLinesOfTheOtherForm) {
  ExpectRefused("[PAD]\t0\n[CLS]\n", ErrorCode::kDataLoss,
                ":2: \"[CLS]\" has no tab: expected token, tab, id as in the first line");
  ExpectRefused("[PAD]\n[CLS]\t1\n", ErrorCode::kDataLoss,
                ":2: \"[CLS]\t1\" has a tab: expected a token alone, as in the first line");
  ExpectRefused("[PAD]\tzero\n", ErrorCode::kDataLoss, ":1: \"zero\" is no id");
  ExpectRefused("[PAD]\t\n", ErrorCode::kDataLoss, ":1: \"\" is no id");
}

TEST_F(VocabularyTest, RefusesTokensThatNoTextCanHold) {
  ExpectRefused(StrCat(kSpecialLines, "a\n\nb\n"), ErrorCode::kDataLoss,
                ": the token of id 6 is empty");
  ExpectRefused(StrCat(kSpecialLines, "\xff\n"), ErrorCode::kDataLoss,
                ": the token of id 5 is no valid UTF-8");
  ExpectError([] { Vocabulary({"a\nb"}); }, ErrorCode::kDataLoss,
              "vocabulary: the token of id 0 holds a tab or a line end");
}

TEST_F(VocabularyTest, RefusesIdsThatItDoesNotHave) {
  const Vocabulary vocabulary = ReadVocabulary(Write(kSpecialLines));
  ExpectError([&] { vocabulary.token(5); }, ErrorCode::kOutOfRange, "token id 5: expected 0 to 4");
  ExpectError([&] { vocabulary.token(-1); }, ErrorCode::kOutOfRange,
              "token id -1: expected 0 to 4");
}

TEST_F(VocabularyTest, SurvivesMutations) {
  const std::string intact = "[PAD]\t0\n[CLS]\t1\n[SEP]\t2\n[MASK]\t3\n,\t6\n[UNK]\t5\nthe\t4\n";
  std::mt19937 random(1);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 500; ++i) {
    try {
      const Vocabulary vocabulary = ReadVocabulary(Write(DamageBytes(intact, &random)));
      for (TokenId id = 0; id < vocabulary.size(); ++id) {
        EXPECT_GE(*vocabulary.Find(vocabulary.token(id)), id);
      }
    } catch (const Error&) {
    }
  }
  testing::internal::GetCapturedStderr();
}

TEST_F(VocabularyTest, NamesAFileThatIsNotThere) {
  EXPECT_EQ(ErrorOf([&] { ReadVocabulary(path_); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace skiff::text
