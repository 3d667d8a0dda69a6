#include "framework/io/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/framework/io/temp_directory.h"

namespace skiff {
namespace {

TEST(ReadFile, ReturnsTheBytes) {
  const TempDirectory directory;
  const std::string bytes("a\0b\n", 4);
  PutBytes(directory / "f", bytes);
  EXPECT_EQ(ReadFile(directory / "f"), bytes);
  PutBytes(directory / "empty", "");
  EXPECT_EQ(ReadFile(directory / "empty"), "");
}

TEST(ReadFile, RefusesWhatIsMissingTooLongOrNoFile) {
  const TempDirectory directory;
  PutBytes(directory / "f", "12345");
  const Error missing = ErrorOf([&] { ReadFile(directory / "g"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(missing.what()).find(directory / "g"), std::string::npos);
  EXPECT_NE(std::string(missing.what()).find("No such file"), std::string::npos);
  EXPECT_EQ(ErrorOf([&] { ReadFile(directory / "f", 4); }).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(ErrorOf([&] { ReadFile(directory.path()); }).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorOf([&] { ReadFile(directory / "f/g"); }).code(), ErrorCode::kIo);
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf([&] { ReadFile(directory / "pipe"); }).code(), ErrorCode::kIo);
}

TEST(InputFile, KnowsItsPlaceAndRefusesToPassTheEnd) {
  const TempDirectory directory;
  PutBytes(directory / "f", std::string("\x01\0\0\0\x02", 5));
  InputFile file(directory / "f");
  EXPECT_EQ(file.ReadNumber<uint32_t>("number"), 1u);
  EXPECT_EQ(file.offset(), 4);
  EXPECT_EQ(file.remaining(), 1);
  const Error error = ErrorOf([&] { file.ReadNumber<uint32_t>("number"); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_NE(std::string(error.what()).find("byte 4: number: expected 4 bytes, found 1"),
            std::string::npos)
      << error.what();
}

TEST(InputFile, NoticesAFileThatShrinks) {
  const TempDirectory directory;
  PutBytes(directory / "f", "12345678");
  InputFile file(directory / "f");
  std::filesystem::resize_file(directory / "f", 3);
  EXPECT_EQ(ErrorOf([&] { file.ReadNumber<uint64_t>("number"); }).code(), ErrorCode::kDataLoss);
}

TEST(OutputFile, CountsBytesAndKeepsTheCrc) {
  const TempDirectory directory;
  OutputFile file(directory / "f");
  file.Write("1234");
  file.Write("56789");
  file.Sync();
  EXPECT_EQ(file.bytes_written(), 9);
  EXPECT_EQ(file.crc32(), 0xcbf43926u);  // the check value of CRC-32
  EXPECT_EQ(BytesOf(directory / "f"), "123456789");
}

TEST(OutputFile, SaysThatTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  OutputFile file("/dev/full");
  const Error error = ErrorOf([&] { file.Write("x"); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(std::string(error.what()).find("/dev/full: No space left"), std::string::npos)
      << error.what();
}

TEST(OutputFile, RefusesAPathThatCannotBe) {
  const TempDirectory directory;
  PutBytes(directory / "f", "x");
  EXPECT_EQ(ErrorOf([&] { OutputFile file(directory / "f/g"); }).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorOf([&] { OutputFile file(directory / "no/g"); }).code(), ErrorCode::kIo);
}

TEST(AtomicFile, ReplacesOnlyOnCommit) {
  const TempDirectory directory;
  PutBytes(directory / "f", "old");
  {
    AtomicFile file(directory / "f");
    file.sink().Write("new");
    EXPECT_EQ(BytesOf(directory / "f"), "old");
  }
  EXPECT_EQ(BytesOf(directory / "f"), "old");
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"f"});
  AtomicWriteFile(directory / "f", "new");
  EXPECT_EQ(BytesOf(directory / "f"), "new");
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"f"});
}

TEST(AtomicFile, LeavesTheOldFileWhenTheLimitIsHit) {
  const TempDirectory directory;
  PutBytes(directory / "f", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = ErrorOf([&] { AtomicWriteFile(directory / "f", std::string(1000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(BytesOf(directory / "f"), "old");
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"f"});
}

TEST(CreateDirectories, MakesParentsAndRefusesFiles) {
  const TempDirectory directory;
  CreateDirectories(directory / "a/b/c");
  CreateDirectories(directory / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
  PutBytes(directory / "f", "x");
  EXPECT_EQ(ErrorOf([&] { CreateDirectories(directory / "f"); }).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorOf([&] { CreateDirectories(directory / "f/g"); }).code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace skiff
