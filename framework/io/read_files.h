// Which files a part of a program reads. The results of a training depend on these files, so a
// continuation needs the same contents.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace skiff {

struct FileContents {
  std::string path;  // as it was opened
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

// Notes the files that this thread opens for reading as long as the object exists.
class ReadFiles {
 public:
  // Throws Error (kFailedPrecondition) if this thread already has a ReadFiles.
  ReadFiles();
  ~ReadFiles();
  ReadFiles(const ReadFiles&) = delete;
  ReadFiles& operator=(const ReadFiles&) = delete;

  // Reads the files once more and returns the contents, each file once, in the order in which the
  // files were opened. Throws Error as InputFile, and (kDataLoss) for a file that has been replaced
  // or written to since it was first opened, as far as inode, size and times of change tell.
  std::vector<FileContents> Contents() const;

 private:
  std::map<std::string, std::string> versions_;  // of each path, as it was first opened
  std::vector<std::string> paths_;               // in order

  friend void NoteReadFile(const std::string& path, int descriptor);
};

// Says that this thread has opened a file for reading, under this descriptor. InputFile does so.
// Throws Error if the file can't be inspected.
void NoteReadFile(const std::string& path, int descriptor);

}  // namespace skiff
