// Where the readers of this package take bytes from, and where its writers put them.
//
// A source knows how many bytes remain, so that a size found in a file is checked before memory is
// taken for it. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"

namespace skiff {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The path of the file, or what else messages should call the source.
  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  int64_t offset() const { return offset_; }
  int64_t remaining() const { return size_ - offset_; }

  // Reads exactly `bytes` bytes. Error (kDataLoss), naming source, offset and `what`, if fewer
  // remain; kIo if the system refuses.
  void Read(void* out, int64_t bytes, std::string_view what);
  // The same as a number, little-endian in the file.
  template <typename Number>
  Number ReadNumber(std::string_view what) {
    Number number;
    Read(&number, sizeof(number), what);
    return number;
  }
  std::string ReadString(int64_t bytes, std::string_view what);

  // Error (kDataLoss) unless `bytes` is between 0 and remaining().
  void CheckRemaining(int64_t bytes, std::string_view what) const;
  // Throws Error (kDataLoss): `<name>, byte <position>: …`.
  template <typename... Args>
  [[noreturn]] void ThrowCorrupt(int64_t position, const Args&... args) const {
    Throw(ErrorCode::kDataLoss, name_, ", byte ", position, ": ", args...);
  }

 protected:
  ByteSource(std::string name, int64_t size) : name_(std::move(name)), size_(size) {}
  // Reads `bytes` > 0 bytes that lie at offset(); the size promises that they are there.
  virtual void ReadNext(void* out, int64_t bytes) = 0;

 private:
  std::string name_;
  int64_t size_;
  int64_t offset_ = 0;
};

// Bytes in memory that the caller keeps alive.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::string_view bytes, std::string name);

 private:
  void ReadNext(void* out, int64_t bytes) override;
  std::string_view bytes_;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  // Error as the sink's: kResourceExhausted where a disk is full, kIo otherwise.
  virtual void Write(const void* data, int64_t bytes) = 0;
  void Write(std::string_view bytes) { Write(bytes.data(), static_cast<int64_t>(bytes.size())); }
};

// Collects in memory what is written.
class StringSink : public ByteSink {
 public:
  using ByteSink::Write;
  void Write(const void* data, int64_t bytes) override;
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Appends a number to `bytes`, little-endian.
template <typename Number>
void AppendNumber(Number number, std::string* bytes) {
  char raw[sizeof(number)];
  std::memcpy(raw, &number, sizeof(number));
  bytes->append(raw, sizeof(number));
}

// The CRC-32 of zlib, gzip and zip (polynomial 0xEDB88320), continued from `crc` (0: the start).
uint32_t Crc32(uint32_t crc, const void* data, int64_t bytes);
// Eight hexadecimal digits.
std::string Crc32Text(uint32_t crc);

}  // namespace skiff
