// The device's memory: addresses of its own, which are never given twice, so that what was freed is
// nobody's. It is mapped twice: where the host may touch it, only copies know.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace skiff::cuda_emulation {

class DeviceMemory {
 public:
  // Never destroyed.
  static DeviceMemory& Get();

  // Whether an address is the device's, used or not.
  bool IsOfDevice(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - begin_ < kAddressBytes;
  }
  // Whether it is one that Always gives.
  bool IsForCopies(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - begin_ - kAddressBytes < kAddressBytes;
  }
  // Whether kernels may touch all of the bytes.
  bool Holds(const void* address, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uint64_t now = changes_.load(std::memory_order_acquire);
    for (const Known& known : knowns_) {
      if (known.changes == now && begin >= known.begin && begin + bytes <= known.end) return true;
    }
    return Find(begin, bytes);
  }

  // Addresses without memory; nullptr: there are no more.
  void* Reserve(size_t bytes);
  void Release(void* begin, size_t bytes);
  // Bytes of the device's memory; false: so much isn't free.
  bool Take(size_t bytes);
  void GiveBack(size_t bytes);
  size_t free_bytes();
  size_t total_bytes() const;
  // Memory behind reserved addresses. False: there is some, or, of the others, there is none.
  bool Map(void* begin, size_t bytes);
  bool Unmap(void* begin, size_t bytes);
  bool Allow(void* begin, size_t bytes);

  // What cudaMalloc does; nullptr: so much isn't free.
  void* Allocate(size_t bytes);
  // False: it is no beginning of what was allocated.
  bool Free(void* begin);

  // For copies: where memory of the device can always be touched; host memory is where it is.
  void* Always(const void* address) const {
    return static_cast<char*>(const_cast<void*>(address)) +
           (IsOfDevice(address) ? kAddressBytes : 0);
  }
  // Shows the memory, also to the host, until the calling thread calls Close. Does nothing if the
  // thread has opened it already: a thread that does a stream's work opens it for the first kernel
  // and closes it when the stream is idle or its wait ends, since hiding it takes longer than most
  // kernels of tests.
  void Open();
  // Hides the memory unless other threads have opened it. Does nothing if the thread hasn't.
  void Close();

 private:
  static constexpr size_t kAddressBytes = size_t{32} << 40;

  struct Range {
    size_t bytes;
    bool is_allowed;
    bool is_allocated;  // by Allocate
  };

  // Stretches that the thread has found, as long as ranges haven't changed.
  struct Known {
    uint64_t changes = 0;
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  static constexpr size_t kKnown = 4;

  DeviceMemory();
  // Returns whether some stretch has all of the bytes; the thread knows it from then on.
  bool Find(uintptr_t begin, size_t bytes);
  // Puts memory behind addresses.
  static void Fill(void* begin, size_t bytes);
  // Of each stretch of allowed ranges without a gap.
  template <class Visit>
  void ForEachStretch(const Visit& visit) const;
  void AddRange(uintptr_t begin, const Range& range);

  static constinit thread_local std::array<Known, kKnown> knowns_;
  static constinit thread_local size_t oldest_known_;
  static constinit thread_local bool has_opened_;

  uintptr_t begin_ = 0;
  // How often ranges have changed: what threads remember of them is no longer so.
  std::atomic<uint64_t> changes_ = 1;
  std::mutex mutex_;
  size_t reserved_ = 0;  // addresses from begin_ on
  size_t taken_ = 0;     // bytes of memory
  std::map<uintptr_t, Range> ranges_;
  int open_ = 0;  // threads that have opened it
};

}  // namespace skiff::cuda_emulation
