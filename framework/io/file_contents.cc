#include "framework/io/file_contents.h"

#include <algorithm>

#include "framework/io/file.h"

namespace skiff {
namespace {

FileContents ContentsAt(const std::string& path) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  InputFile file(path);
  FileContents contents{.path = path, .bytes = file.size()};
  std::string piece;
  while (file.remaining() > 0) {
    piece = file.ReadString(std::min(kPiece, file.remaining()), "contents");
    contents.crc32 = Crc32(contents.crc32, piece.data(), std::ssize(piece));
  }
  return contents;
}

}  // namespace

std::vector<FileContents> ContentsOf(const ReadFiles& files) {
  std::vector<FileContents> contents;
  for (const std::string& path : files.paths()) {
    contents.push_back(ContentsAt(path));
    // After the second reading, so that a change in the course of it counts, too.
    files.CheckUnchanged(path);
  }
  return contents;
}

}  // namespace skiff
