#include "framework/io/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(LinesOf, CutsAtEveryKindOfLineEnd) {
  EXPECT_THAT(LinesOf("a\nb\r\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(LinesOf("a\n"), ElementsAre("a"));
  EXPECT_THAT(LinesOf(""), ElementsAre());
  EXPECT_THAT(LinesOf("\n"), ElementsAre(""));
}

TEST(LineReader, GivesTheLinesOfAStream) {
  const auto lines_of = [](const std::string& text) {
    std::istringstream stream(text);
    LineReader reader(&stream);
    std::vector<std::string> lines;
    for (std::string line; reader.Next(&line);) {
      lines.push_back(line);
      EXPECT_EQ(reader.number(), std::ssize(lines));
    }
    const std::vector<std::string_view> expected = LinesOf(text);
    EXPECT_EQ(lines, std::vector<std::string>(expected.begin(), expected.end())) << text;
    return lines;
  };
  EXPECT_THAT(lines_of("a\n\n \nb\r\nc"), ElementsAre("a", "", " ", "b", "c"));
  lines_of("");
  lines_of("\n");
  lines_of("a\r\r\n");
}

// Some editors begin a file with it. Elsewhere it is a character like others.
TEST(TextFiles, HaveNoByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  const TempDirectory directory;
  const std::string path = directory / "text";
  PutBytes(path, mark + mark + "a\n" + mark + "b");
  EXPECT_EQ(ReadTextFile(path), mark + "a\n" + mark + "b");
  std::istringstream stream(mark + "a\n" + mark + "b");
  LineReader reader(&stream);
  std::string line;
  EXPECT_TRUE(reader.Next(&line));
  EXPECT_EQ(line, "a");
  EXPECT_TRUE(reader.Next(&line));
  EXPECT_EQ(line, mark + "b");
}

TEST(TextFiles, OfAMarkAloneHaveTheLinesOfTheStream) {
  const TempDirectory directory;
  const std::string path = directory / "text";
  for (const std::string rest : {"", "\n", "\r", "\r\n", "\n\n"}) {
    const std::string bytes = "\xEF\xBB\xBF" + rest;
    PutBytes(path, bytes);
    const std::string text = ReadTextFile(path);
    std::istringstream stream(bytes);
    LineReader reader(&stream);
    size_t lines = 0;
    for (std::string line; reader.Next(&line); ++lines) EXPECT_EQ(line, "");
    EXPECT_EQ(lines, LinesOf(text).size()) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace skiff
