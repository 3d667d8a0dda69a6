#include "framework/io/unpacked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/io/read_files.h"
#include "framework/io/system_error.h"

namespace skiff {
namespace {

// No deflate stream expands more than this (zlib, "Maximum Compression Factor").
constexpr int64_t kDeflateLimit = 1032;

int64_t FileSize(const std::string& path) {
  std::error_code error;
  SKIFF_ENFORCE(std::filesystem::exists(path, error), kNotFound, "no file ", path);
  SKIFF_ENFORCE(std::filesystem::is_regular_file(path, error), kIo, path, " isn't a regular file");
  const auto size = std::filesystem::file_size(path, error);
  SKIFF_ENFORCE(!error, kIo, "cannot read the size of ", path, ": ", error.message());
  return static_cast<int64_t>(size);
}

gzFile Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) ThrowSystemError("open", path, errno);
  gzFile file = nullptr;
  try {
    NoteReadFile(path, descriptor);
    file = gzdopen(descriptor, "rb");
    SKIFF_ENFORCE(file != nullptr, kResourceExhausted, "no memory to unpack ", path);
  } catch (...) {
    close(descriptor);
    throw;
  }
  return file;
}

}  // namespace

UnpackedFile::UnpackedFile(const std::string& path)
    : path_(path), file_bytes_(FileSize(path)), file_(Open(path)) {}

UnpackedFile::~UnpackedFile() { gzclose(file_); }

void UnpackedFile::ThrowCorrupt() {
  int code = 0;
  std::string_view reason = gzerror(file_, &code);
  // What zlib calls a file that it hasn't opened itself.
  if (reason.starts_with("<fd:")) reason.remove_prefix(reason.find(": ") + 2);
  Throw(ErrorCode::kDataLoss, "cannot unpack ", path_, ": ", reason);
}

void UnpackedFile::EnforceIntact(int got) {
  // Z_BUF_ERROR: the bytes are all there, but the stream's CRC isn't.
  int code = Z_OK;
  gzerror(file_, &code);
  if (got < 0 || code == Z_BUF_ERROR) ThrowCorrupt();
}

void UnpackedFile::Read(uint8_t* out, int64_t bytes, std::string_view what) {
  constexpr int64_t kPiece = int64_t{1} << 30;  // zlib counts with int
  int64_t done = 0;
  while (done < bytes) {
    const auto piece = static_cast<unsigned>(std::min(kPiece, bytes - done));
    const int got = gzread(file_, out + done, piece);
    if (got < 0) ThrowCorrupt();
    SKIFF_ENFORCE(got > 0, kDataLoss, path_, " ends after ", done, " of ", bytes, " bytes of ",
                  what);
    done += got;
  }
}

void UnpackedFile::EnforceEnd() {
  uint8_t byte;
  const int got = gzread(file_, &byte, 1);
  EnforceIntact(got);
  SKIFF_ENFORCE(got == 0, kDataLoss, path_, " continues after its last element");
}

std::string UnpackedFile::ReadRest(int64_t limit_bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::string bytes;
  while (true) {
    const size_t done = bytes.size();
    bytes.resize(done + kPiece);
    const int got = gzread(file_, bytes.data() + done, static_cast<unsigned>(kPiece));
    EnforceIntact(got);
    bytes.resize(done + static_cast<size_t>(got));
    SKIFF_ENFORCE(static_cast<int64_t>(bytes.size()) <= limit_bytes, kOutOfRange, path_,
                  " holds more than ", limit_bytes, " bytes");
    if (got == 0) return bytes;
  }
}

void UnpackedFile::CheckHolds(int64_t bytes) const {
  const int64_t limit = gzdirect(file_) ? file_bytes_ : MultiplyCounts(file_bytes_, kDeflateLimit);
  SKIFF_ENFORCE(bytes <= limit, kDataLoss, path_, " says that it has ", bytes,
                " elements, but a file of ", file_bytes_, " bytes holds no more than ", limit);
}

}  // namespace skiff
