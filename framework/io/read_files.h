// Which files a part of a program reads. The results of a training depend on these files, so a
// continuation needs the same contents.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace skiff {

// Notes the files that this thread opens for reading as long as the object exists.
class ReadFiles {
 public:
  // Throws Error (kFailedPrecondition) if this thread already has a ReadFiles.
  ReadFiles();
  ~ReadFiles();
  ReadFiles(const ReadFiles&) = delete;
  ReadFiles& operator=(const ReadFiles&) = delete;

  // Returns the paths of the files, as they were opened, each once, in the order in which they were
  // opened first.
  const std::vector<std::string>& paths() const { return paths_; }
  // Throws Error (kDataLoss) if the file at `path`, one of paths(), has been replaced or written to
  // since it was first opened, as far as inode, size and times of change tell.
  void CheckUnchanged(const std::string& path) const;

 private:
  std::map<std::string, std::string> versions_;  // of each path, as it was first opened
  std::vector<std::string> paths_;

  friend void NoteReadFile(const std::string& path, int descriptor);
};

// Says that this thread has opened a file for reading, under this descriptor. InputFile does so.
// Throws Error if the file can't be inspected.
void NoteReadFile(const std::string& path, int descriptor);

}  // namespace skiff
