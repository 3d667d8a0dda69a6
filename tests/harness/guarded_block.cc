#include "tests/harness/guarded_block.h"

#include <cstring>

namespace skiff::harness {
namespace {

constexpr int64_t kGuardBytes = 256;
// Not-a-number both as one double and as two floats.
constexpr uint64_t kGuardPattern = 0x7FF8DEAD7FC0BEEF;

// Differs from one block to most others, so that a copy from guard to guard shows.
unsigned char GuardByte(int64_t position, const Buffer& buffer) {
  const uint64_t address = reinterpret_cast<uintptr_t>(buffer.data()) >> 8 & 0xFF;
  const uint64_t pattern = kGuardPattern ^ (address << 32 | address);
  return static_cast<unsigned char>(pattern >> (position % 8 * 8));
}

// Returns the bytes as a tensor, so that they can be copied between places.
Tensor BytesOf(const std::shared_ptr<Buffer>& buffer, int64_t begin, int64_t count) {
  return Tensor({count}, DType::kUint8, buffer, begin);
}

}  // namespace

GuardedBlock::GuardedBlock(int64_t bytes, Place place)
    : bytes_(bytes),
      buffer_(std::make_shared<Buffer>(AllocatorOf(place), bytes + 2 * kGuardBytes)) {
  Tensor guards({buffer_->bytes()}, DType::kUint8);
  for (int64_t i = 0; i < buffer_->bytes(); ++i) guards.data<uint8_t>()[i] = GuardByte(i, *buffer_);
  Tensor all = BytesOf(buffer_, 0, buffer_->bytes());
  CopyTensor(guards, &all);
}

void* GuardedBlock::data() const { return static_cast<char*>(buffer_->data()) + kGuardBytes; }

int64_t GuardedBlock::offset_bytes() const { return kGuardBytes; }

void GuardedBlock::Fill(unsigned char byte) {
  Tensor filled({bytes_}, DType::kUint8);
  if (bytes_ > 0) std::memset(filled.raw_data(), byte, static_cast<size_t>(bytes_));
  Tensor block = BytesOf(buffer_, kGuardBytes, bytes_);
  CopyTensor(filled, &block);
}

bool GuardedBlock::guards_are_intact() const {
  const auto is_guard = [&](const Tensor& bytes, int64_t begin) {
    for (int64_t i = 0; i < kGuardBytes; ++i) {
      if (bytes.data<uint8_t>()[i] != GuardByte(begin + i, *buffer_)) return false;
    }
    return true;
  };
  const int64_t after = kGuardBytes + bytes_;
  return is_guard(CopyToCpu(BytesOf(buffer_, 0, kGuardBytes)), 0) &&
         is_guard(CopyToCpu(BytesOf(buffer_, after, kGuardBytes)), after);
}

}  // namespace skiff::harness
