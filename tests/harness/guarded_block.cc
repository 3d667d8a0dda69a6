#include "tests/harness/guarded_block.h"

#include <cstring>
#include <vector>

#include "framework/base/element_count.h"
#include "memory/places.h"

namespace skiff::harness {
namespace {

constexpr int64_t kGuardBytes = 256;
// Not-a-number both as one double and as two floats.
constexpr uint64_t kGuardPattern = 0x7FF8DEAD7FC0BEEF;

// Returns what the block holds before anybody writes there, or a part of it. It differs from one
// block to most others, so that a copy from guard to guard shows.
std::vector<unsigned char> GuardBytes(const Buffer& buffer, int64_t begin, int64_t count) {
  const uint64_t address = reinterpret_cast<uintptr_t>(buffer.data()) >> 8 & 0xFF;
  const uint64_t pattern = kGuardPattern ^ (address << 32 | address);
  constexpr int64_t kWordBytes = sizeof(pattern);
  std::vector<unsigned char> bytes(static_cast<size_t>(RoundUp(count, kWordBytes) + kWordBytes));
  for (size_t i = 0; i < bytes.size(); i += sizeof(pattern)) {
    std::memcpy(&bytes[i], &pattern, sizeof(pattern));
  }
  const auto first = bytes.begin() + begin % kWordBytes;
  return {first, first + count};
}

// Returns the bytes as a tensor, so that they can be copied between places.
Tensor BytesOf(const std::shared_ptr<Buffer>& buffer, int64_t begin, int64_t count) {
  return Tensor({count}, DType::kUint8, buffer, begin);
}

}  // namespace

GuardedBlock::GuardedBlock(int64_t bytes, Place place)
    : bytes_(bytes),
      buffer_(std::make_shared<Buffer>(AllocatorOf(place), bytes + 2 * kGuardBytes)) {
  const std::vector<unsigned char> held = GuardBytes(*buffer_, 0, buffer_->bytes());
  Tensor guards({buffer_->bytes()}, DType::kUint8);
  std::memcpy(guards.raw_data(), held.data(), held.size());
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
    const std::vector<unsigned char> expected = GuardBytes(*buffer_, begin, kGuardBytes);
    return std::memcmp(bytes.raw_data(), expected.data(), expected.size()) == 0;
  };
  const int64_t after = kGuardBytes + bytes_;
  return is_guard(CopyToCpu(BytesOf(buffer_, 0, kGuardBytes)), 0) &&
         is_guard(CopyToCpu(BytesOf(buffer_, after, kGuardBytes)), after);
}

}  // namespace skiff::harness
