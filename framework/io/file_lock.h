// A lock between processes: a file that at most one process holds at a time.
#pragma once

#include <string>

namespace skiff {

// The constructor tries to take the lock, the destructor releases it, and the system releases it
// when the process ends in any way. The file stays, empty. On file systems without locks every
// process holds it.
class FileLock {
 public:
  // Creates the file unless it exists. Throws the Errors of file.h.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Returns false if another process holds the lock.
  bool is_held() const { return is_held_; }
  // Returns whether the file is still where it was: not if it, or a folder above it, was removed,
  // renamed or replaced. Others may then take a lock of the same path.
  bool is_in_place() const;

 private:
  std::string path_;
  int descriptor_;
  bool is_held_ = false;
};

}  // namespace skiff
