#include "framework/ir/wire_reader.h"

namespace skiff::wire {

void WireReader::Skip() {
  if (wire_type_ == kStartGroup) return SkipGroup();
  switch (wire_type_) {
    case pbf_wire_type::varint:
      Varint();
      return;
    case pbf_wire_type::fixed64:
      Take(8);
      return;
    case pbf_wire_type::length_delimited:
      Bytes();
      return;
    case pbf_wire_type::fixed32:
      Take(4);
      return;
    default:
      throw protozero::unknown_pbf_wire_type_exception();
  }
}

void WireReader::ReadTag() {
  constexpr int kWireTypeBits = 3;
  const auto tag = static_cast<uint32_t>(ShortVarint());
  number_ = tag >> kWireTypeBits;
  wire_type_ = pbf_wire_type{tag & ((1u << kWireTypeBits) - 1)};
  if (number_ == 0) throw protozero::invalid_tag_exception();
}

void WireReader::SkipGroup() {
  const protozero::pbf_tag_type group = number_;
  if (++depth_ > kMaxDepth) throw protozero::invalid_tag_exception();
  for (ReadTag(); wire_type_ != kEndGroup; ReadTag()) Skip();
  if (number_ != group) throw protozero::invalid_tag_exception();
  --depth_;
}

uint64_t WireReader::ShortVarint() {
  constexpr int kMaxBytes = 5;
  const char* const start = data_;
  const uint64_t value = Varint();
  if (data_ - start > kMaxBytes) throw protozero::varint_too_long_exception();
  return value;
}

const char* WireReader::Take(uint64_t size) {
  if (size > static_cast<uint64_t>(end_ - data_)) throw protozero::end_of_buffer_exception();
  const char* const start = data_;
  data_ += size;
  return start;
}

}  // namespace skiff::wire
