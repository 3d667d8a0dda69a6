// What threads, which may not throw, have found wrong in data: the first place of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace skiff {

// The smallest of the indices recorded, so that a message doesn't depend on which thread is faster.
// Thread-safe.
class FirstBadIndex {
 public:
  void Record(int64_t index) {
    int64_t known = index_.load(std::memory_order_relaxed);
    while (index < known &&
           !index_.compare_exchange_weak(known, index, std::memory_order_relaxed)) {
    }
  }
  // nullopt if none was recorded.
  std::optional<int64_t> Find() const {
    const int64_t index = index_.load(std::memory_order_relaxed);
    return index == kNone ? std::nullopt : std::optional(index);
  }

 private:
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> index_{kNone};
};

}  // namespace skiff
