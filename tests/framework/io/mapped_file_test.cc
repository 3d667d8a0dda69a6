#include "framework/io/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

std::string_view TextOf(const MappedFile& file) {
  return {file.data(), static_cast<size_t>(file.size())};
}

TEST(MappedFile, HoldsTheBytesWithoutTheOpenFile) {
  const TempDirectory directory;
  const std::string bytes = "a" + std::string(5000, '\0') + "b";
  PutBytes(directory / "f", bytes);
  const auto open = std::make_unique<InputFile>(directory / "f");
  open->Seek(7);
  const MappedFile mapped(*open);
  std::filesystem::remove(directory / "f");
  EXPECT_EQ(TextOf(mapped), bytes);
}

TEST(MappedFile, MayBeEmpty) {
  const TempDirectory directory;
  PutBytes(directory / "f", "");
  const MappedFile mapped{InputFile(directory / "f")};
  EXPECT_EQ(mapped.size(), 0);
  EXPECT_EQ(mapped.data(), nullptr);
}

TEST(MappedFile, KeepsWritesToItself) {
  const TempDirectory directory;
  PutBytes(directory / "f", "abc");
  const InputFile open(directory / "f");
  const MappedFile written(open);
  const MappedFile other(open);
  written.data()[1] = 'x';
  EXPECT_EQ(TextOf(written), "axc");
  EXPECT_EQ(TextOf(other), "abc");
  EXPECT_EQ(BytesOf(directory / "f"), "abc");
}

TEST(MappedFile, RefusesAFileThatHasShrunk) {
  const TempDirectory directory;
  PutBytes(directory / "f", "abc");
  const InputFile open(directory / "f");
  std::filesystem::resize_file(directory / "f", 2);
  ExpectError([&] { MappedFile{open}; }, ErrorCode::kDataLoss,
              directory / "f, byte 2: the file ends, but had 3 bytes when it was opened");
  // Longer is no matter: the rest isn't mapped.
  PutBytes(directory / "f", "abcd");
  EXPECT_EQ(TextOf(MappedFile(open)), "abc");
}

// The files of Linux's /sys have a size, but can't be mapped.
TEST(MappedFile, SaysThatAFileSystemCannotMap) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const InputFile open(path);
  ExpectError([&] { MappedFile{open}; }, ErrorCode::kIo, "map " + path + ": No such device");
}

}  // namespace
}  // namespace skiff
