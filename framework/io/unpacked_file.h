// The bytes of a file that may be compressed with gzip: a plain file is passed through.
//
// As in gzip itself, what follows a gzip stream and is none counts as padding.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace skiff {

class UnpackedFile {
 public:
  // Throws Error: kNotFound if there is no such file, kIo if it is no regular file.
  explicit UnpackedFile(const std::string& path);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Reads exactly `bytes` bytes. Messages call them `what`. Throws Error (kDataLoss) if the file
  // ends before or is corrupt.
  void Read(uint8_t* out, int64_t bytes, std::string_view what);
  // Throws Error (kDataLoss) unless everything was read and the file is intact to its end.
  void EnforceEnd();
  // Returns everything up to the end. Throws Error: kDataLoss if the file is corrupt, kOutOfRange
  // if more than `limit_bytes` bytes are left.
  std::string ReadRest(int64_t limit_bytes);
  // Throws Error (kDataLoss) if the file can't hold `bytes` bytes however well it is compressed:
  // to be asked before memory is taken for them.
  void CheckHolds(int64_t bytes) const;

 private:
  [[noreturn]] void ThrowCorrupt();
  // Throws if the last call of zlib failed, or if a compressed file was cut.
  void EnforceIntact(int got);

  std::string path_;
  int64_t file_bytes_;
  gzFile file_;
};

}  // namespace skiff
