#include "framework/io/read_files.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff {
namespace {

thread_local ReadFiles* noting = nullptr;

FileContents ContentsOf(const std::string& path) {
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

ReadFiles::ReadFiles() {
  SKIFF_ENFORCE(noting == nullptr, kFailedPrecondition,
                "files that are read are noted already: expected one ReadFiles at a time");
  noting = this;
}

ReadFiles::~ReadFiles() { noting = nullptr; }

std::vector<FileContents> ReadFiles::Contents() const {
  std::vector<FileContents> contents;
  for (const std::string& path : paths_) contents.push_back(ContentsOf(path));
  return contents;
}

void NoteReadFile(const std::string& path) {
  if (noting == nullptr || std::ranges::count(noting->paths_, path) > 0) return;
  noting->paths_.push_back(path);
}

}  // namespace skiff
