#include "framework/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "framework/io/system_error.h"

namespace skiff {

FileLock::FileLock(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) ThrowSystemError("open", path, errno);
  // flock and not fcntl: the lock belongs to the open file, so it ends with this descriptor or the
  // process, whatever else the process opens and closes. Errors other than "held by another" mean a
  // file system without locks.
  is_held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

FileLock::~FileLock() { close(descriptor_); }

bool FileLock::is_in_place() const {
  struct stat held {};
  struct stat found {};
  return fstat(descriptor_, &held) == 0 && stat(path_.c_str(), &found) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace skiff
