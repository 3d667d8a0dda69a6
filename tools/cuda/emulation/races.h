// Finds accesses of two threads to the same bytes, of which one writes, that nothing orders: no
// barrier of the block, no __syncwarp of the warp, and, across blocks, no atomics.
#pragma once

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
  // Empty, or with whom the access races.
  std::string Access(const void* address, size_t bytes, bool is_write, bool is_shared,
                     Accessor accessor);

 private:
  static constexpr size_t kWordBytes = 4;
  static constexpr size_t kPageWords = 1024;

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

  bool IsRace(const Visit& before, const Visit& now, bool is_shared, bool is_read_of_write) const;
  std::string Describe(const Visit& before, bool was_write) const;
  Word& WordOf(uintptr_t number);

  uint64_t interval_ = 1;
  uint64_t first_of_launch_ = 1;
  uint64_t first_of_block_ = 1;
  bool has_fence_ = false;
  bool is_atomic_ = false;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  // Pages used lately, by the last bits of their numbers.
  std::array<std::pair<uintptr_t, Page*>, 16> recent_ = {};
};

}  // namespace skiff::cuda_emulation
