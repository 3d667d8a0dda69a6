// What files hold that a part of a program has read. What a training computes depends on it, so a
// continuation needs the same contents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/io/read_files.h"

namespace skiff {

struct FileContents {
  std::string path;  // as it was opened
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

// Reads the files once more and returns what they hold, each once, in the order in which they were
// opened. Throws Error as InputFile, and (kDataLoss) for a file that has changed since it was first
// opened (ReadFiles::CheckUnchanged).
std::vector<FileContents> ContentsOf(const ReadFiles& files);

}  // namespace skiff
