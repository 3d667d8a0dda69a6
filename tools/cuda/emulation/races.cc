#include "tools/cuda/emulation/races.h"

#include <algorithm>
#include <sstream>

namespace skiff::cuda_emulation {
namespace {

constexpr int kWarp = 32;

}  // namespace

std::string RaceDetector::Access(const void* address, size_t bytes, bool is_write, bool is_shared,
                                 Accessor accessor) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = begin + bytes;
  for (uintptr_t at = begin / kWordBytes; at * kWordBytes < end; ++at) {
    Visit now;
    now.interval = interval_;
    now.epoch = accessor.epoch & 0xFFF;
    now.thread = static_cast<uint64_t>(accessor.thread);
    now.is_atomic = is_atomic_;
    const uintptr_t first = std::max(begin, at * kWordBytes) % kWordBytes;
    const uintptr_t last = std::min(end, (at + 1) * kWordBytes) - at * kWordBytes;
    now.bytes = (1U << last) - (1U << first);
    Word& word = WordOf(at);
    if (IsRace(word.written, now, is_shared, !is_write)) return Describe(word.written, true);
    if (is_write && IsRace(word.read, now, is_shared, false)) return Describe(word.read, false);
    (is_write ? word.written : word.read) = now;
  }
  return {};
}

bool RaceDetector::IsRace(const Visit& before, const Visit& now, bool is_shared,
                          bool is_read_of_write) const {
  // Shared memory is each block's own.
  if (before.interval < (is_shared ? first_of_block_ : first_of_launch_) ||
      (before.bytes & now.bytes) == 0)
    return false;
  if (before.is_atomic && now.is_atomic) return false;
  if (before.interval < first_of_block_) return !(is_read_of_write && has_fence_);
  if (before.interval != now.interval || before.thread == now.thread) return false;
  return before.thread / kWarp != now.thread / kWarp || before.epoch == now.epoch;
}

std::string RaceDetector::Describe(const Visit& before, bool was_write) const {
  std::ostringstream text;
  text << (was_write ? "has written" : "has read");
  if (before.interval < first_of_block_) {
    text << " there, and nothing orders blocks";
    return "another block " + text.str();
  }
  return "thread " + std::to_string(before.thread) + " of the block " + text.str() +
         " there since the last barrier";
}

RaceDetector::Word& RaceDetector::WordOf(uintptr_t number) {
  const uintptr_t page = number / kPageWords;
  auto& [recent, found] = recent_[page % recent_.size()];
  if (found == nullptr || recent != page) {
    std::unique_ptr<Page>& words = pages_[page];
    if (words == nullptr) words = std::make_unique<Page>();
    found = words.get();
    recent = page;
  }
  return (*found)[number % kPageWords];
}

}  // namespace skiff::cuda_emulation
