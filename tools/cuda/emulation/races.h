// Finds accesses of two threads to the same bytes, of which one writes, that nothing orders: no
// barrier of the block, no __syncwarp of the warp, and, across blocks, no atomics. Blocks run one
// after the other. The detector is called for each access, so most of it is inline.
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
  // Begins a launch: it races with nothing that came before.
  void BeginLaunch() {
    first_of_launch_ = first_of_block_ = ++interval_;
    if (pages_.size() <= kMostPages) return;
    pages_.clear();
    recent_ = {};
  }
  // Begins a block of the launch, whose accesses may race with those of earlier blocks.
  void BeginBlock() {
    first_of_block_ = ++interval_;
    has_fence_ = false;
    is_atomic_ = false;  // a thread may have failed in an atomic access
  }
  // Notes a barrier of the block: the accesses of the block's threads before it are ordered before
  // later accesses.
  void PassBarrier() { ++interval_; }
  // Notes a __threadfence: until the block ends, its reads don't race with writes of earlier
  // blocks.
  void PassFence() { has_fence_ = true; }
  // Says whether the accesses that follow are atomic. Two atomic ones don't race.
  void SetAtomic(bool is_atomic) { is_atomic_ = is_atomic; }

  // Who accesses memory.
  struct Accessor {
    int thread;      // its number in the block
    unsigned epoch;  // how many __syncwarp its warp has passed
  };
  // Notes an access. Returns false if it races with an earlier one; race() then says with which.
  [[gnu::always_inline]] bool Access(const void* address, size_t bytes, bool is_write,
                                     bool is_shared, Accessor accessor) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = begin + bytes;
    // Shared memory is each block's own.
    const Visit since = Visit{is_shared ? first_of_block_ : first_of_launch_} << kIntervalAt;
    const Visit now = interval_ << kIntervalAt | Visit{accessor.epoch & kEpochMask} << kEpochAt |
                      static_cast<Visit>(accessor.thread) << kThreadAt | Visit{is_atomic_};
    if (begin % kWordBytes == 0 && bytes % kWordBytes == 0) {
      for (uintptr_t at = begin / kWordBytes; at < end / kWordBytes; ++at) {
        if (!Note(WordOf(at), now | kAllBytes << kBytesAt, since, is_write)) return false;
      }
      return true;
    }
    for (uintptr_t at = begin / kWordBytes; at * kWordBytes < end; ++at) {
      const uintptr_t first = std::max(begin, at * kWordBytes) % kWordBytes;
      const uintptr_t last = std::min(end, (at + 1) * kWordBytes) - at * kWordBytes;
      const Visit touched = (Visit{1} << last) - (Visit{1} << first);
      if (!Note(WordOf(at), now | touched << kBytesAt, since, is_write)) return false;
    }
    return true;
  }
  // Returns the other access of the race that Access found last, for messages.
  const std::string& race() const { return race_; }

 private:
  static constexpr size_t kWordBytes = 4;
  static constexpr size_t kPageWords = 1024;
  static constexpr size_t kRecentPages = 256;
  static constexpr size_t kMostPages = 4096;  // from one launch to the next: 64 MiB
  static constexpr int kWarp = 32;

  // Who was there last: from bit 28 on the interval between two barriers, numbered over all blocks
  // (0: none), so that visits compare by interval; below it __syncwarp's epoch, the thread, a bit
  // for each byte, and whether the access was atomic.
  using Visit = uint64_t;
  static constexpr int kIntervalAt = 28;
  static constexpr int kEpochAt = 15;
  static constexpr unsigned kEpochMask = 0xFFF;
  static constexpr int kThreadAt = 5;
  static constexpr Visit kThreadMask = 0x3FF;
  static constexpr int kBytesAt = 1;
  static constexpr Visit kAllBytes = 0xF;
  static constexpr Visit kAtomic = 1;
  struct Word {
    Visit written = 0;
    Visit read = 0;
  };
  using Page = std::array<Word, kPageWords>;

  static unsigned ThreadOf(Visit visit) { return visit >> kThreadAt & kThreadMask; }

  // Notes the visit of a word. Returns false if it races with the last write or, if it writes, with
  // the last read. Visits before `since`, which most words have, race with nothing.
  [[gnu::always_inline]] bool Note(Word& word, Visit now, Visit since, bool is_write) {
    if (word.written >= since && IsRace(word.written, now, !is_write)) {
      return Fail(word.written, true);
    }
    if (is_write && word.read >= since && IsRace(word.read, now, false)) {
      return Fail(word.read, false);
    }
    (is_write ? word.written : word.read) = now;
    return true;
  }
  // Returns whether nothing orders two visits of a word, of which one writes.
  bool IsRace(Visit before, Visit now, bool is_read_of_write) const {
    if ((before & now & kAllBytes << kBytesAt) == 0 || (before & now & kAtomic) != 0) return false;
    if (before >> kIntervalAt < first_of_block_) return !(is_read_of_write && has_fence_);
    if (before >> kIntervalAt != now >> kIntervalAt) return false;
    const unsigned thread = ThreadOf(before);
    const unsigned other = ThreadOf(now);
    if (thread == other) return false;
    return thread / kWarp != other / kWarp || ((before ^ now) >> kEpochAt & kEpochMask) == 0;
  }
  // Writes the race with an earlier visit to race_, and returns false.
  bool Fail(Visit before, bool was_write);
  // Returns the record of a word of memory, by its address in words.
  Word& WordOf(uintptr_t number) {
    const uintptr_t page = number / kPageWords;
    const auto& [recent, words] = recent_[page % kRecentPages];
    Page& found = words != nullptr && recent == page ? *words : FindPage(page);
    return found[number % kPageWords];
  }
  // Returns a page of records, which it makes if there is none, and keeps it in recent_.
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
