#include "framework/io/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

TEST(FileLock, IsHeldByOneAtATime) {
  const TempDirectory directory;
  const std::string path = directory / "lock";
  {
    const FileLock first(path);
    EXPECT_TRUE(first.is_held());
    EXPECT_FALSE(FileLock(path).is_held());
    EXPECT_TRUE(FileLock(directory / "other").is_held());
    // The one that was refused has taken nothing away.
    EXPECT_FALSE(FileLock(path).is_held());
  }
  EXPECT_TRUE(FileLock(path).is_held());
}

TEST(FileLock, IsFreeAgainWhenItsProcessIsKilled) {
  const TempDirectory directory;
  const std::string path = directory / "lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t process = fork();
  if (process == 0) {
    const FileLock lock(path);
    const char is_held = lock.is_held() ? 1 : 0;
    if (write(ready[1], &is_held, 1) == 1) pause();
    _exit(0);
  }
  char is_held = 0;
  EXPECT_EQ(read(ready[0], &is_held, 1), 1);
  EXPECT_EQ(is_held, 1);
  EXPECT_FALSE(FileLock(path).is_held());
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  EXPECT_TRUE(FileLock(path).is_held());
  close(ready[0]);
  close(ready[1]);
}

TEST(FileLock, NoticesThatItsFileIsGone) {
  namespace fs = std::filesystem;
  const TempDirectory directory;
  const std::string folder = directory / "run";
  fs::create_directory(folder);
  const FileLock lock(folder + "/lock");
  EXPECT_TRUE(lock.is_in_place());
  fs::rename(folder, directory / "elsewhere");
  EXPECT_FALSE(lock.is_in_place());
  fs::rename(directory / "elsewhere", folder);
  EXPECT_TRUE(lock.is_in_place());
  fs::remove_all(folder);
  EXPECT_FALSE(lock.is_in_place());
  // Another one of that name isn't the one that is held.
  fs::create_directory(folder);
  const FileLock other(folder + "/lock");
  EXPECT_TRUE(other.is_held());
  EXPECT_TRUE(other.is_in_place());
  EXPECT_FALSE(lock.is_in_place());
}

TEST(FileLock, SaysWhyItsFileCannotBeOpened) {
  const TempDirectory directory;
  ExpectError([&] { FileLock(directory.path()); }, ErrorCode::kIo,
              "open " + directory.path() + ": Is a directory");
}

}  // namespace
}  // namespace skiff
