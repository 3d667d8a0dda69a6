// The bytes of a file in the memory of this process.
#pragma once

#include <cstdint>

#include "framework/io/file.h"

namespace skiff {

// A private mapping: the system reads a page when it is first touched, and processes that map the
// same file share it. A write gives this mapping a page of its own; the file never changes.
//
// As long as the mapping exists, no process may shorten the file or write to it. Touching a page
// that the file no longer has, or that the disk fails to read, ends the process with SIGBUS instead
// of an Error; what another process writes may or may not appear. Replacing the file by another
// file of the same name, as AtomicFile does, is safe: the mapping keeps the old file.
class MappedFile {
 public:
  // Maps the bytes that the file had when it was opened. `file` need not outlive the mapping.
  // Throws Error (kDataLoss) if it has become shorter since, (kResourceExhausted) if there is no
  // room for it among the addresses of this process, and (kIo) if its file system can't map.
  explicit MappedFile(const InputFile& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Begins at a page. nullptr for a file without bytes.
  char* data() const { return static_cast<char*>(data_); }
  int64_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  int64_t size_;
};

}  // namespace skiff
