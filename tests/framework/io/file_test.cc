#include "framework/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

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
  ExpectError([&] { ReadFile(directory / "f", 4); }, ErrorCode::kOutOfRange,
              directory / "f has 5 bytes: expected at most 4");
  ExpectError([&] { ReadFile(directory.path()); }, ErrorCode::kIo,
              "open " + directory.path() + ": expected a regular file");
  ExpectError([&] { ReadFile(directory / "f/g"); }, ErrorCode::kIo,
              "open " + directory / "f/g: Not a directory");
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  ExpectError([&] { ReadFile(directory / "pipe"); }, ErrorCode::kIo,
              "open " + directory / "pipe: expected a regular file");
  ExpectError([&] { ReadFile("/dev/zero"); }, ErrorCode::kIo,
              "open /dev/zero: expected a regular file");
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
  ExpectError([&] { file.ReadNumber<uint64_t>("number"); }, ErrorCode::kDataLoss,
              directory / "f, byte 3: the file ends, but had 8 bytes when it was opened");
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
  ExpectError([&] { OutputFile file(directory / "f/g"); }, ErrorCode::kIo,
              "create " + directory / "f/g: Not a directory");
  ExpectError([&] { OutputFile file(directory / "no/g"); }, ErrorCode::kIo,
              "create " + directory / "no/g: the directory doesn't exist");
  ExpectError([&] { OutputFile file(directory.path()); }, ErrorCode::kIo,
              "create " + directory.path() + ": Is a directory");
  // Not even root makes files there.
  EXPECT_EQ(ErrorOf([] { OutputFile file("/proc/skiff"); }).code(), ErrorCode::kIo);
}

// A rename would put a file in the place of the device. (A link to one stands for it: should the
// check fail, the machine's own must not go.)
TEST(AtomicFile, ReplacesNothingButFiles) {
  const TempDirectory directory;
  std::filesystem::create_directory(directory / "d");
  std::filesystem::create_symlink("/dev/full", directory / "full");
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {directory / "d", directory / "full", directory / "pipe"}) {
    ExpectError([&] { AtomicWriteFile(path, "x"); }, ErrorCode::kIo,
                "write " + path + ": expected a regular file, or none yet");
  }
  EXPECT_EQ(NamesIn(directory.path()), (std::vector<std::string>{"d", "full", "pipe"}));
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "full"));
}

TEST(AtomicFile, LeavesTheOldFileOnAFullDisk) {
  const TempDirectory directory;
  TinyDisk disk(directory / "disk", 256 << 10);
  if (!disk.is_mounted()) GTEST_SKIP() << "no permission to mount";
  const std::string path = disk.path() + "/f";
  AtomicWriteFile(path, "old");
  const Error error = ErrorOf([&] { AtomicWriteFile(path, std::string(512 << 10, 'x')); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(std::string(error.what()).find(": No space left on device"), std::string::npos)
      << error.what();
  EXPECT_EQ(BytesOf(path), "old");
  EXPECT_EQ(NamesIn(disk.path()), std::vector<std::string>{"f"});
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
  const auto write = [&] {
    const FileSizeLimit limit(100);
    AtomicWriteFile(directory / "f", std::string(1000, 'x'));
  };
  const Error error = ErrorOf(write);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(BytesOf(directory / "f"), "old");
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"f"});
}

TEST(PathExists, TellsWhatIsThereAndWhatTheSystemCannotTell) {
  const TempDirectory directory;
  PutBytes(directory / "f", "");
  EXPECT_TRUE(PathExists(directory / "f"));
  EXPECT_TRUE(PathExists(directory.path()));
  EXPECT_FALSE(PathExists(directory / "g"));
  EXPECT_FALSE(PathExists(directory / "f/g"));
  std::filesystem::create_symlink("circle", directory / "circle");
  ExpectError([&] { PathExists(directory / "circle"); }, ErrorCode::kIo,
              "look for " + directory / "circle: Too many levels of symbolic links");
}

TEST(CreateDirectories, MakesParentsAndRefusesFiles) {
  const TempDirectory directory;
  CreateDirectories(directory / "a/b/c");
  CreateDirectories(directory / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
  PutBytes(directory / "f", "x");
  for (const std::string& path : {directory / "f", directory / "f/g"}) {
    ExpectError([&] { CreateDirectories(path); }, ErrorCode::kIo,
                "create directory " + path + ": Not a directory");
  }
}

TEST(RemoveTempFiles, RemovesWhatKilledWritersLeft) {
  const TempDirectory directory;
  const std::vector<std::string> kept = {".tmp-1-", "a",           "a.tmp",        "a.tmp--1",
                                         "a.tmp-1", "a.tmp-1-2-3", "a.tmp-1-2.gz", "a.tmp-x-1"};
  for (const std::string& name : kept) PutBytes(directory / name, "mine");
  PutBytes(TempPathFor(directory / "a"), "half");
  PutBytes(TempPathFor(directory / "a.tmp-1"), "half");
  RemoveTempFiles(directory.path());
  EXPECT_EQ(NamesIn(directory.path()), kept);
  // No writer of ours leaves folders or links.
  CreateDirectories(directory / "b.tmp-1-1/c");
  CreateDirectories(directory / "b.tmp-1-2");
  std::filesystem::create_symlink("a", directory / "b.tmp-1-3");
  const std::vector<std::string> names = NamesIn(directory.path());
  RemoveTempFiles(directory.path());
  EXPECT_EQ(NamesIn(directory.path()), names);
  EXPECT_NO_THROW(RemoveTempFiles(directory / "no"));
}

}  // namespace
}  // namespace skiff
