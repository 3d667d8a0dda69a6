#include "tests/harness/wire_bytes.h"

namespace skiff {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

std::string Tag(int number, int wire_type) {
  return Varint(static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(wire_type));
}

std::string IntField(int number, int64_t value) {
  return Tag(number, 0) + Varint(static_cast<uint64_t>(value));
}

std::string BytesField(int number, const std::string& value) {
  return Tag(number, 2) + Varint(value.size()) + value;
}

std::string Fixed32Field(int number, const std::string& little_endian) {
  return Tag(number, 5) + little_endian;
}

std::string Fixed64Field(int number, const std::string& little_endian) {
  return Tag(number, 1) + little_endian;
}

std::string Group(int number, const std::string& fields) {
  return Tag(number, 3) + fields + Tag(number, 4);
}

std::string Repeated(const std::string& piece, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += piece;
  return bytes;
}

}  // namespace skiff
