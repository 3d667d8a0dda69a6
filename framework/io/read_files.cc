#include "framework/io/read_files.h"

#include <sys/stat.h>

#include <cerrno>

#include "framework/base/error.h"
#include "framework/io/system_error.h"

namespace skiff {
namespace {

thread_local ReadFiles* noting = nullptr;

// Returns a text that changes when the file is written to, and is another one for another file.
std::string VersionOf(const struct stat& status) {
  // The time of the last change, which nobody can set, and of the last write.
  return StrCat(status.st_dev, " ", status.st_ino, " ", status.st_size, " ", status.st_ctim.tv_sec,
                " ", status.st_ctim.tv_nsec, " ", status.st_mtim.tv_sec, " ",
                status.st_mtim.tv_nsec);
}

std::string VersionAt(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) ThrowSystemError("inspect", path, errno);
  return VersionOf(status);
}

}  // namespace

ReadFiles::ReadFiles() {
  SKIFF_ENFORCE(noting == nullptr, kFailedPrecondition,
                "files that are read are noted already: expected one ReadFiles at a time");
  noting = this;
}

ReadFiles::~ReadFiles() { noting = nullptr; }

void ReadFiles::CheckUnchanged(const std::string& path) const {
  SKIFF_ENFORCE(VersionAt(path) == versions_.at(path), kDataLoss, path,
                " has changed since it was read: expected it to stay as it is until the training "
                "begins");
}

void NoteReadFile(const std::string& path, int descriptor) {
  if (noting == nullptr || noting->versions_.contains(path)) return;
  // Of the file that is open: the path may be that of another one by now.
  struct stat status {};
  if (fstat(descriptor, &status) != 0) ThrowSystemError("inspect", path, errno);
  noting->versions_[path] = VersionOf(status);
  noting->paths_.push_back(path);
}

}  // namespace skiff
