// Collects the first position of a mistake in data from the threads of a loop, which may not throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace skiff {

// Keeps the smallest index recorded, so that a message doesn't depend on which thread is faster.
// Thread-safe.
class FirstBadIndex {
 public:
  void Record(int64_t index) {
    int64_t known = index_.load(std::memory_order_relaxed);
    while (index < known &&
           !index_.compare_exchange_weak(known, index, std::memory_order_relaxed)) {
    }
  }
  // Returns the smallest index, or nullopt if none was recorded.
  std::optional<int64_t> Find() const {
    const int64_t index = index_.load(std::memory_order_relaxed);
    return index == kNone ? std::nullopt : std::optional(index);
  }

 private:
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> index_{kNone};
};

}  // namespace skiff
