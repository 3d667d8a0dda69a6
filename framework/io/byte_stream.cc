#include "framework/io/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <bit>

#include "framework/base/number_text.h"

namespace skiff {

static_assert(std::endian::native == std::endian::little,
              "numbers are read and written as they are in memory");

void ByteSource::CheckRemaining(int64_t bytes, std::string_view what) const {
  if (bytes >= 0 && bytes <= remaining()) return;
  ThrowCorrupt(offset_, what, ": expected ", bytes, " bytes, found ", remaining());
}

void ByteSource::Read(void* out, int64_t bytes, std::string_view what) {
  CheckRemaining(bytes, what);
  // `out` may be null then.
  if (bytes == 0) return;
  ReadNext(out, bytes);
  offset_ += bytes;
}

std::string ByteSource::ReadString(int64_t bytes, std::string_view what) {
  CheckRemaining(bytes, what);
  // Checked before the memory is taken: a damaged size must not exhaust it.
  std::string text(static_cast<size_t>(bytes), '\0');
  Read(text.data(), bytes, what);
  return text;
}

MemorySource::MemorySource(std::string_view bytes, std::string name)
    : ByteSource(std::move(name), static_cast<int64_t>(bytes.size())), bytes_(bytes) {}

void MemorySource::ReadNext(void* out, int64_t bytes) {
  std::memcpy(out, bytes_.data() + offset(), static_cast<size_t>(bytes));
}

void StringSink::Write(const void* data, int64_t bytes) {
  if (bytes > 0) bytes_.append(static_cast<const char*>(data), static_cast<size_t>(bytes));
}

uint32_t Crc32(uint32_t crc, const void* data, int64_t bytes) {
  // zlib takes 32-bit lengths.
  constexpr int64_t kChunkBytes = int64_t{1} << 30;
  const auto* next = static_cast<const Bytef*>(data);
  while (bytes > 0) {
    const int64_t chunk = std::min(bytes, kChunkBytes);
    crc = static_cast<uint32_t>(crc32(crc, next, static_cast<uInt>(chunk)));
    next += chunk;
    bytes -= chunk;
  }
  return crc;
}

std::string Crc32Text(uint32_t crc) { return FormatHex(crc, 8); }

}  // namespace skiff
