// Finds accesses of two threads to the same bytes, of which one writes, that nothing orders: no
// barrier of the block, no __syncwarp of the warp, and, across blocks, no atomics. It is called for
// each access, so most of it is inline.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace skiff::cuda_emulation {

class RaceDetector {
 public:
  // Nothing before it matters any more.
  void BeginLaunch() { first_of_launch_ = first_of_block_ = ++interval_; }
  void BeginBlock() {
    first_of_block_ = ++interval_;
    has_fence_ = false;
    is_atomic_ = false;  // a thread may have failed in an atomic access
  }
  void PassBarrier() { ++interval_; }
  // The block publishes, and reads what others have published, by atomics.
  void PassFence() { has_fence_ = true; }
  void SetAtomic(bool is_atomic) { is_atomic_ = is_atomic; }

  struct Accessor {
    int thread;
    unsigned epoch;  // how many __syncwarp its warp has passed
  };
  // False if the access races with another one. race() says with which.
  bool Access(const void* address, size_t bytes, bool is_write, bool is_shared, Accessor accessor) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = begin + bytes;
    for (uintptr_t at = begin / kWordBytes; at * kWordBytes < end; ++at) {
      const uintptr_t first = std::max(begin, at * kWordBytes) % kWordBytes;
      const uintptr_t last = std::min(end, (at + 1) * kWordBytes) - at * kWordBytes;
      Visit now;
      now.interval = interval_;
      now.epoch = accessor.epoch & 0xFFF;
      now.thread = static_cast<uint64_t>(accessor.thread);
      now.bytes = (1U << last) - (1U << first);
      now.is_atomic = is_atomic_;
      Word& word = WordOf(at);
      if (IsRace(word.written, now, is_shared, !is_write)) return Fail(word.written, true);
      if (is_write && IsRace(word.read, now, is_shared, false)) return Fail(word.read, false);
      (is_write ? word.written : word.read) = now;
    }
    return true;
  }
  const std::string& race() const { return race_; }

 private:
  static constexpr size_t kWordBytes = 4;
  static constexpr size_t kPageWords = 1024;
  static constexpr size_t kRecentPages = 16;
  static constexpr int kWarp = 32;

  // Who was there last. `interval` numbers what lies between two barriers, over all blocks; 0:
  // none.
  struct Visit {
    uint64_t interval : 36 = 0;
    uint64_t epoch : 12 = 0;
    uint64_t thread : 10 = 0;
    uint64_t bytes : 4 = 0;  // a bit each
    uint64_t is_atomic : 1 = 0;
  };
  struct Word {
    Visit written;
    Visit read;
  };
  using Page = std::array<Word, kPageWords>;

  bool IsRace(const Visit& before, const Visit& now, bool is_shared, bool is_read_of_write) const {
    // Shared memory is each block's own.
    if (before.interval < (is_shared ? first_of_block_ : first_of_launch_) ||
        (before.bytes & now.bytes) == 0)
      return false;
    if (before.is_atomic && now.is_atomic) return false;
    if (before.interval < first_of_block_) return !(is_read_of_write && has_fence_);
    if (before.interval != now.interval || before.thread == now.thread) return false;
    return before.thread / kWarp != now.thread / kWarp || before.epoch == now.epoch;
  }
  // Notes the race with an earlier access, and returns false.
  bool Fail(const Visit& before, bool was_write);
  Word& WordOf(uintptr_t number) {
    const uintptr_t page = number / kPageWords;
    const auto& [recent, words] = recent_[page % kRecentPages];
    Page& found = words != nullptr && recent == page ? *words : FindPage(page);
    return found[number % kPageWords];
  }
  Page& FindPage(uintptr_t page);

  uint64_t interval_ = 1;
  uint64_t first_of_launch_ = 1;
  uint64_t first_of_block_ = 1;
  bool has_fence_ = false;
  bool is_atomic_ = false;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  // Pages used lately, by the last bits of their numbers.
  std::array<std::pair<uintptr_t, Page*>, kRecentPages> recent_ = {};
  std::string race_;
};

}  // namespace skiff::cuda_emulation
