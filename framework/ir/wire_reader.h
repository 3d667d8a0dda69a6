// Reads the fields of a serialised message in turn. Internal to the codec.
//
// protozero's own reader isn't used: it cuts tags and lengths to 32 bits, takes a bool from its
// first byte only, and refuses groups and the numbers 19000 to 19999, all unlike libprotobuf.
#pragma once

#include <cstdint>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>
#include <string_view>

namespace skiff::wire {

using protozero::pbf_wire_type;

// Functions throw protozero::exception if the bytes don't have the expected form.
class WireReader {
 public:
  // libprotobuf's limit of messages and groups in each other, without the outermost message.
  static constexpr int kMaxDepth = 100;

  // `depth`: the number of messages around the message.
  WireReader(std::string_view bytes, int depth)
      : data_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {}

  // Moves to the next field, whose value must then be read or skipped. Returns false at the end.
  bool Next() {
    if (AtEnd()) return false;
    ReadTag();
    return true;
  }

  bool AtEnd() const { return data_ == end_; }
  int depth() const { return depth_; }
  protozero::pbf_tag_type number() const { return number_; }
  pbf_wire_type wire_type() const { return wire_type_; }

  uint64_t Varint() { return protozero::decode_varint(&data_, end_); }

  // The bytes of a string, a message or a packed list.
  std::string_view Bytes() {
    const uint64_t length = ShortVarint();
    return {Take(length), static_cast<size_t>(length)};
  }

  // T: float or double.
  template <typename T>
  T Fixed() {
    static_assert(PROTOZERO_BYTE_ORDER == PROTOZERO_LITTLE_ENDIAN);
    T value;
    std::memcpy(&value, Take(sizeof value), sizeof value);
    return value;
  }

  void Skip();

 private:
  // Groups are an old kind of message, between two tags.
  static constexpr pbf_wire_type kStartGroup{3};
  static constexpr pbf_wire_type kEndGroup{4};

  void ReadTag();
  void SkipGroup();
  // Of a tag or a length: libprotobuf takes no more than five bytes.
  uint64_t ShortVarint();
  // Returns where the next `size` bytes are, and moves behind them.
  const char* Take(uint64_t size);

  const char* data_;
  const char* end_;
  int depth_;
  protozero::pbf_tag_type number_ = 0;
  pbf_wire_type wire_type_ = pbf_wire_type::unknown;
};

}  // namespace skiff::wire
