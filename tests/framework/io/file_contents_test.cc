#include "framework/io/file_contents.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/byte_stream.h"
#include "framework/io/file.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

uint32_t CrcOf(const std::string& text) { return Crc32(0, text.data(), std::ssize(text)); }

class FileContentsTest : public ::testing::Test {
 protected:
  FileContentsTest() {
    AtomicWriteFile(a_, "first");
    AtomicWriteFile(b_, "second one");
  }

  TempDirectory directory_;
  const std::string a_ = directory_ / "a";
  const std::string b_ = directory_ / "b";
};

TEST_F(FileContentsTest, TellsWhatFilesHeldInTheOrderInWhichTheyWereOpened) {
  ReadFile(a_);
  const ReadFiles files;
  EXPECT_TRUE(ContentsOf(files).empty());
  ReadFile(b_);
  // Opened is enough: who decides by its size depends on it, too.
  EXPECT_EQ(InputFile(a_).size(), 5);
  ReadFile(b_);
  const std::vector<FileContents> contents = ContentsOf(files);
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_EQ(contents[0].path, b_);
  EXPECT_EQ(contents[0].bytes, 10);
  EXPECT_EQ(contents[0].crc32, CrcOf("second one"));
  EXPECT_EQ(contents[1].path, a_);
  EXPECT_EQ(contents[1].crc32, CrcOf("first"));
}

TEST_F(FileContentsTest, NotesNothingOfOtherThreadsAndNothingBeforeOrAfter) {
  {
    const ReadFiles files;
    std::thread([&] { ReadFile(a_); }).join();
    EXPECT_TRUE(ContentsOf(files).empty());
    ExpectError([] { ReadFiles second; }, ErrorCode::kFailedPrecondition,
                "files that are read are noted already: expected one ReadFiles at a time");
    ReadFile(a_);
    EXPECT_EQ(ContentsOf(files).size(), 1u);
  }
  ReadFile(a_);
  EXPECT_TRUE(ContentsOf(ReadFiles()).empty());
}

// The sums would be those of other contents than the reader's.
TEST_F(FileContentsTest, RefusesAFileThatChanges) {
  const ReadFiles files;
  ReadFile(a_);
  AtomicWriteFile(a_, "other");  // another file of as many bytes
  ExpectError([&] { ContentsOf(files); }, ErrorCode::kDataLoss,
              a_ +
                  " has changed since it was read: expected it to stay as it is until the training "
                  "begins");
  std::filesystem::remove(a_);
  EXPECT_THROW(ContentsOf(files), Error);
}

TEST_F(FileContentsTest, RefusesAFileThatIsWrittenTo) {
  const ReadFiles files;
  ReadFile(b_);
  std::filesystem::resize_file(b_, 3);
  EXPECT_THROW(ContentsOf(files), Error);
}

}  // namespace
}  // namespace skiff
