#include "framework/text/parallel_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "framework/io/file.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class ParallelTextTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(directory_.path(), name);
    AtomicWriteFile(path, text);
    return path;
  }

  TempDirectory directory_;
};

TEST_F(ParallelTextTest, ReadsTwoFilesLineByLine) {
  const auto pairs = ReadParallelText(Write("a", "ein Hund\n\nzwei\n"), Write("b", "a dog\n\ntwo"));
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].source, "ein Hund");
  EXPECT_EQ(pairs[1].target, "two");
}

TEST_F(ParallelTextTest, ReadsATable) {
  const auto pairs = ReadPairTable(Write("t", "a\tb\tignored\nc\td\n"));
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].target, "b");
}

TEST_F(ParallelTextTest, BeginsBehindAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(ReadPairTable(Write("t", mark + "a\tb\n"))[0].source, "a");
  const auto pairs = ReadParallelText(Write("source", mark + "a\n"), Write("target", mark + "b\n"));
  EXPECT_EQ(pairs[0].source, "a");
  EXPECT_EQ(pairs[0].target, "b");
}

TEST_F(ParallelTextTest, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string path = directory_ / "t";
  for (int i = 0; i < 500; ++i) {
    PutBytes(path, DamageBytes("ein Hund\ta dog\tx\n\nzwei\ttwo\r\n", &random));
    try {
      EXPECT_FALSE(ReadPairTable(path).empty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    }
  }
}

TEST_F(ParallelTextTest, LeavesOutBlankLines) {
  EXPECT_THAT(ReadPairTable(Write("t", "\na\tb\n \t \n  \nc\td\r\n")), SizeIs(2));
  EXPECT_THAT(ReadParallelText(Write("a", "a\n \nb\n"), Write("b", "c\n\nd\n")), SizeIs(2));
}

TEST_F(ParallelTextTest, NamesWhatDoesNotFit) {
  const std::string two = Write("two", "a\nb\n");
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("one", "a\n")); }),
              MatchesRegex(".*two has 2 lines and .*one has 1: expected as many"));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("x", "a\n\n")); }),
              HasSubstr("line 2: no target for the source \"b\""));
  EXPECT_THAT(
      ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(Write("y", "\xC2\xA0\nc"), two); }),
      HasSubstr("line 1: no source for the target \"a\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("nothing", "")); }),
              HasSubstr("two has 2 lines and "));
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { ReadParallelText(two, two + "no"); }),
              HasSubstr("twono"));
  EXPECT_THAT(
      ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(Write("side", "a\tb\n \tc\n")); }),
      HasSubstr("side, line 2: no source for the target \"c\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(two); }),
              HasSubstr("line 1: no tab in \"a\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(Write("empty", "\n")); }),
              HasSubstr("there is no sentence"));
}

}  // namespace
}  // namespace skiff::text
