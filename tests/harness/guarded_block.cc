#include "tests/harness/guarded_block.h"

#include <cstring>

namespace skiff::harness {
namespace {

constexpr int64_t kGuardBytes = 256;
// Not-a-number both as one double and as two floats.
constexpr uint64_t kGuardPattern = 0x7FF8DEAD7FC0BEEF;

unsigned char GuardByte(int64_t position) {
  return static_cast<unsigned char>(kGuardPattern >> (position % 8 * 8));
}

template <typename Visitor>
void ForEachGuardByte(int64_t bytes, Visitor visitor) {
  for (int64_t i = 0; i < kGuardBytes; ++i) visitor(i);
  for (int64_t i = kGuardBytes + bytes; i < 2 * kGuardBytes + bytes; ++i) visitor(i);
}

}  // namespace

GuardedBlock::GuardedBlock(int64_t bytes)
    : bytes_(bytes),
      buffer_(std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), bytes + 2 * kGuardBytes)) {
  auto* memory = static_cast<unsigned char*>(buffer_->data());
  ForEachGuardByte(bytes, [&](int64_t i) { memory[i] = GuardByte(i); });
}

void* GuardedBlock::data() const { return static_cast<char*>(buffer_->data()) + kGuardBytes; }

int64_t GuardedBlock::offset_bytes() const { return kGuardBytes; }

void GuardedBlock::Fill(unsigned char byte) {
  std::memset(data(), byte, static_cast<size_t>(bytes_));
}

bool GuardedBlock::guards_are_intact() const {
  const auto* memory = static_cast<const unsigned char*>(buffer_->data());
  bool intact = true;
  ForEachGuardByte(bytes_, [&](int64_t i) { intact = intact && memory[i] == GuardByte(i); });
  return intact;
}

}  // namespace skiff::harness
