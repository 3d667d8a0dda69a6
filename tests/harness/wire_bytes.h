// The wire format of protobuf by hand: what tests of the codec put files together from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace skiff {

std::string Varint(uint64_t value);
// A tag: the number of a field and the wire type of its value.
std::string Tag(int number, int wire_type);
std::string IntField(int number, int64_t value);
// A string, a message or a packed list.
std::string BytesField(int number, const std::string& value);
std::string Fixed32Field(int number, const std::string& little_endian);
std::string Fixed64Field(int number, const std::string& little_endian);
std::string Group(int number, const std::string& fields);
std::string Repeated(const std::string& piece, size_t count);

}  // namespace skiff
