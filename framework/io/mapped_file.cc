#include "framework/io/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "framework/io/system_error.h"

namespace skiff {

MappedFile::MappedFile(const InputFile& file) : size_(file.size()) {
  file.CheckNotShrunk();
  // The system refuses to map nothing.
  if (size_ == 0) return;
  // MAP_NORESERVE, since hardly any page is written: a file may be larger than the free memory.
  data_ = mmap(nullptr, static_cast<size_t>(size_), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (data_ == MAP_FAILED) ThrowSystemError("map", file.name(), errno);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

}  // namespace skiff
