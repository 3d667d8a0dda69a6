// A lock between processes: a file that at most one of them holds.
#pragma once

#include <string>

namespace skiff {

// Tries to take the lock when it is made and gives it back when it is destroyed; when the process
// ends, however it does, the system gives it back. The file stays, empty. On file systems that know
// no locks everyone holds it.
class FileLock {
 public:
  // Creates the file if it isn't there. Error as for files (file.h).
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // false: someone else does.
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

}  // namespace skiff
