#include "framework/io/file.h"

#include <gtest/gtest.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <functional>

#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

namespace {

// What the program synced, in order, and the random numbers that it is given before those of the
// system.
std::vector<std::string> synced_paths;
std::deque<uint64_t> next_random_bits;

}  // namespace

// In the place of the C library's.
extern "C" int fsync(int descriptor) {
  synced_paths.push_back(
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)));
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

extern "C" ssize_t getrandom(void* out, size_t bytes, unsigned flags) {
  if (next_random_bits.empty() || bytes != sizeof(uint64_t)) {
    return syscall(SYS_getrandom, out, bytes, flags);
  }
  std::memcpy(out, &next_random_bits.front(), bytes);
  next_random_bits.pop_front();
  return static_cast<ssize_t>(bytes);
}

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

TEST(InputFile, ContinuesWhereItIsTold) {
  const TempDirectory directory;
  PutBytes(directory / "f", "12345");
  InputFile file(directory / "f");
  file.Seek(3);
  EXPECT_EQ(file.ReadString(2, "text"), "45");
  file.Seek(1);
  EXPECT_EQ(file.ReadString(1, "text"), "2");
  file.Seek(5);
  EXPECT_EQ(file.remaining(), 0);
  for (const int64_t outside : {-1, 6}) {
    ExpectError([&] { file.Seek(outside); }, ErrorCode::kDataLoss,
                StrCat(directory / "f, byte ", outside, ": the file has only 5 bytes"));
  }
  EXPECT_EQ(file.offset(), 5);
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
  const TempDirectory directory;
  const TinyDisk disk(directory / "disk", 64 << 10);
  if (!disk.is_mounted()) GTEST_SKIP() << "no permission to mount";
  OutputFile file(disk.path() + "/f");
  const Error error = ErrorOf([&] { file.Write(std::string(128 << 10, 'x')); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(std::string(error.what()).find("/f: No space left"), std::string::npos) << error.what();
}

// Whoever can put a link into a folder must not choose the file that is written.
TEST(OutputFile, FollowsNoLinkAndTakesNoFileThatIsThere) {
  const TempDirectory directory;
  PutBytes(directory / "victim", "old");
  std::filesystem::create_symlink("victim", directory / "link");
  std::filesystem::create_symlink("nowhere", directory / "dangling");
  for (const char* name : {"victim", "link", "dangling"}) {
    ExpectError([&] { OutputFile file(directory / name); }, ErrorCode::kAlreadyExists,
                "create " + directory / name + ": File exists");
  }
  EXPECT_EQ(BytesOf(directory / "victim"), "old");
  EXPECT_EQ(NamesIn(directory.path()), (std::vector<std::string>{"dangling", "link", "victim"}));
}

TEST(OutputFile, RefusesAPathThatCannotBe) {
  const TempDirectory directory;
  PutBytes(directory / "f", "x");
  ExpectError([&] { OutputFile file(directory / "f/g"); }, ErrorCode::kIo,
              "create " + directory / "f/g: Not a directory");
  ExpectError([&] { OutputFile file(directory / "no/g"); }, ErrorCode::kIo,
              "create " + directory / "no/g: the directory doesn't exist");
  ExpectError([&] { OutputFile file(directory.path()); }, ErrorCode::kAlreadyExists,
              "create " + directory.path() + ": File exists");
  // Not even root makes files there.
  EXPECT_EQ(ErrorOf([] { OutputFile file("/proc/skiff"); }).code(), ErrorCode::kIo);
}

// The system would take the path up to the NUL.
TEST(Files, RefuseAPathWithANul) {
  const TempDirectory directory;
  const std::string name = directory / "a";
  const std::string path = name + std::string("\0b", 2);
  PutBytes(name, "x");
  const std::string message = "a path with a NUL after \"" + name + "\": expected one without";
  const std::vector<std::function<void()>> uses = {
      [&] { InputFile file(path); },     [&] { OutputFile file(path); },
      [&] { AtomicFile file(path); },    [&] { CreateDirectories(path); },
      [&] { CreateNewDirectory(path); }, [&] { PathExists(path); },
      [&] { RenamePath(path, name); },   [&] { RenamePath(name, path); },
      [&] { SyncDirectory(path); },
  };
  for (const std::function<void()>& use : uses) {
    ExpectError(use, ErrorCode::kInvalidArgument, message);
  }
}

// A rename would put a file in the place of the device. (The test uses a link to a device: should
// the check fail, it must not remove the machine's own.)
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

TEST(AtomicFile, TakesAnotherNameWhereItsOwnIsTaken) {
  const TempDirectory directory;
  const std::string path = directory / "f";
  PutBytes(directory / "victim", "old");
  std::filesystem::create_symlink("victim", path + ".tmp-0000000000000007");
  PutBytes(path + ".tmp-0123456789abcdef", "another writer's");
  next_random_bits = {7, 0x0123456789abcdef, 0xfedcba9876543210};
  AtomicFile file(path);
  EXPECT_EQ(file.temp_path(), path + ".tmp-fedcba9876543210");
  file.sink().Write("new");
  file.Commit();
  EXPECT_EQ(BytesOf(path), "new");
  EXPECT_EQ(BytesOf(directory / "victim"), "old");
  EXPECT_EQ(BytesOf(path + ".tmp-0123456789abcdef"), "another writer's");
}

TEST(AtomicFile, GivesUpWhereNoNameIsFree) {
  const TempDirectory directory;
  PutBytes(directory / "f.tmp-0000000000000007", "mine");
  next_random_bits = std::deque<uint64_t>(1000, 7);
  ExpectError([&] { AtomicFile file(directory / "f"); }, ErrorCode::kAlreadyExists,
              "create " + directory / "f.tmp-0000000000000007: File exists");
  next_random_bits.clear();
}

// In two containers two processes may have one number, and start from one image.
TEST(AtomicFile, HasANameThatNoOtherProcessGives) {
  const TempDirectory directory;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Killed, it leaves its file.
      const AtomicFile file(directory / "f");
      _exit(file.temp_path().find(std::to_string(getpid()) + "-") == std::string::npos ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "the name holds the number of the process";
  }
  EXPECT_EQ(NamesIn(directory.path()).size(), 2u);
  RemoveTempFiles(directory.path());
  EXPECT_TRUE(NamesIn(directory.path()).empty());
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

// An entry of a directory is on the disk once the directory is.
TEST(CreateDirectories, BringsTheEntriesOfNewOnesToTheDisk) {
  const TempDirectory directory;
  CreateDirectories(directory / "a");
  const std::string a = std::filesystem::canonical(directory / "a");
  synced_paths.clear();
  CreateDirectories(directory / "a/b/c/d");
  EXPECT_EQ(synced_paths, (std::vector<std::string>{a, a + "/b", a + "/b/c"}));
  synced_paths.clear();
  CreateDirectories(directory / "a/b/c/d");
  EXPECT_TRUE(synced_paths.empty());
}

TEST(CreateNewDirectory, RefusesOneThatIsThere) {
  const TempDirectory directory;
  CreateNewDirectory(directory / "a");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a"));
  std::filesystem::create_symlink("a", directory / "link");
  for (const char* name : {"a", "link"}) {
    ExpectError([&] { CreateNewDirectory(directory / name); }, ErrorCode::kAlreadyExists,
                "create directory " + directory / name + ": File exists");
  }
}

TEST(RemoveTempFiles, RemovesWhatKilledWritersLeft) {
  const TempDirectory directory;
  const std::vector<std::string> kept = {".tmp-1-",
                                         "a",
                                         "a.tmp",
                                         "a.tmp-",
                                         "a.tmp-0123456789abcde",
                                         "a.tmp-0123456789abcdef0",
                                         "a.tmp-0123456789abcdef.gz",
                                         "a.tmp-0123456789abcdeg",
                                         "a.tmp-1"};
  for (const std::string& name : kept) PutBytes(directory / name, "mine");
  PutBytes(directory / "a.tmp-0123456789abcdef", "half");
  PutBytes(directory / "a.tmp-1.tmp-0000000000000000", "half");
  RemoveTempFiles(directory.path());
  std::vector<std::string> sorted = kept;
  std::ranges::sort(sorted);
  EXPECT_EQ(NamesIn(directory.path()), sorted);
  // No writer of ours leaves folders or links.
  CreateDirectories(directory / "b.tmp-0000000000000001/c");
  CreateDirectories(directory / "b.tmp-0000000000000002");
  std::filesystem::create_symlink("a", directory / "b.tmp-0000000000000003");
  const std::vector<std::string> names = NamesIn(directory.path());
  RemoveTempFiles(directory.path());
  EXPECT_EQ(NamesIn(directory.path()), names);
  EXPECT_NO_THROW(RemoveTempFiles(directory / "no"));
}

}  // namespace
}  // namespace skiff
