// Which files a part of a program reads. What a training computes depends on them, so a
// continuation needs the same contents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skiff {

struct FileContents {
  std::string path;  // as it was opened
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

// Notes the files that this thread opens for reading as long as the object exists. One at a time.
class ReadFiles {
 public:
  ReadFiles();
  ~ReadFiles();
  ReadFiles(const ReadFiles&) = delete;
  ReadFiles& operator=(const ReadFiles&) = delete;

  // Reads the files once more and returns what they hold, each once, in the order in which they
  // were opened. Throws Error as InputFile.
  std::vector<FileContents> Contents() const;

 private:
  std::vector<std::string> paths_;

  friend void NoteReadFile(const std::string& path);
};

// Says that this thread has opened a file for reading. InputFile does so.
void NoteReadFile(const std::string& path);

}  // namespace skiff
