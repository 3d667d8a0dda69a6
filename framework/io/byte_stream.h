// Byte sources and sinks: readers of this package read from a source, writers write to a sink.
//
// A source knows how many bytes remain, so readers check a size found in a file before they
// allocate memory by it. Not thread-safe.
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

  // Returns the path of the file, or another name of the source, for messages.
  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  int64_t offset() const { return offset_; }
  int64_t remaining() const { return size_ - offset_; }

  // Reads exactly `bytes` bytes. Throws Error (kDataLoss), naming source, offset and `what`, if
  // fewer remain, and (kIo) if the system fails.
  void Read(void* out, int64_t bytes, std::string_view what);
  // Reads a number, little-endian. Throws what Read throws.
  template <typename Number>
  Number ReadNumber(std::string_view what) {
    Number number;
    Read(&number, sizeof(number), what);
    return number;
  }
  std::string ReadString(int64_t bytes, std::string_view what);

  // Throws Error (kDataLoss) unless `bytes` is between 0 and remaining().
  void CheckRemaining(int64_t bytes, std::string_view what) const;
  // Throws Error (kDataLoss): `<name>, byte <position>: …`.
  template <typename... Args>
  [[noreturn]] void ThrowCorrupt(int64_t position, const Args&... args) const {
    Throw(ErrorCode::kDataLoss, name_, ", byte ", position, ": ", args...);
  }

 protected:
  ByteSource(std::string name, int64_t size) : name_(std::move(name)), size_(size) {}
  // Reads `bytes` > 0 bytes from offset() on. At least that many remain, according to size().
  virtual void ReadNext(void* out, int64_t bytes) = 0;
  // For sources that can continue anywhere. `offset` is within the source.
  void set_offset(int64_t offset) { offset_ = offset; }

 private:
  std::string name_;
  int64_t size_;
  int64_t offset_ = 0;
};

// A source of bytes in memory, which the caller keeps alive.
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

  // Writes all bytes. Throws Error (kResourceExhausted) if a disk is full, else (kIo).
  virtual void Write(const void* data, int64_t bytes) = 0;
  void Write(std::string_view bytes) { Write(bytes.data(), static_cast<int64_t>(bytes.size())); }
};

// A sink that collects all bytes in memory.
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

// Returns the CRC-32 of zlib, gzip and zip (polynomial 0xEDB88320), continued from `crc`; 0 starts
// one.
uint32_t Crc32(uint32_t crc, const void* data, int64_t bytes);
// Returns eight hexadecimal digits.
std::string Crc32Text(uint32_t crc);

}  // namespace skiff
