// The memory of the devices. Each device has a separate range of addresses, which are never given
// twice, so that freed addresses belong to nobody. All memory is mapped twice: kernels use one
// address, which the host can't touch while no stream runs kernels; copies use the other, which can
// always be touched.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace skiff::cuda_emulation {

// Thread-safe.
class DeviceMemory {
 public:
  // Returns the memory of all devices, which is never destroyed.
  static DeviceMemory& Get();

  // Returns whether an address is one of a device's, used or not.
  bool IsOfDevice(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - begin_ < kAddressBytes;
  }
  // Returns which device has the address, which is a device's.
  int DeviceOf(const void* address) const {
    return static_cast<int>((reinterpret_cast<uintptr_t>(address) - begin_) / of_each_);
  }
  // Returns whether an address is one that Always returns for a device's memory.
  bool IsForCopies(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - begin_ - kAddressBytes < kAddressBytes;
  }
  // Returns whether kernels of the device may touch all of the bytes: they are the device's, and
  // allocated, or mapped and allowed. They may be in several allocations that lie side by side.
  bool Holds(int device, const void* address, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uint64_t now = changes_.load(std::memory_order_acquire);
    for (const Known& known : knowns_) {
      if (known.changes == now && begin >= known.begin && begin + bytes <= known.end) {
        return known.device == device;
      }
    }
    return IsOfDevice(address) && DeviceOf(address) == device && Find(begin, bytes);
  }

  // Returns addresses of the device without memory behind them, or nullptr if there are no more.
  void* Reserve(int device, size_t bytes);
  // Unmaps the memory at reserved addresses. Nobody gets them again.
  void Release(void* begin, size_t bytes);

  // Counts bytes of the device's memory as used. Returns false, and counts none, if fewer are free.
  bool Take(int device, size_t bytes);
  // Counts bytes as free again that Take has counted as used.
  void GiveBack(int device, size_t bytes);
  // Returns how many bytes of the device are free.
  size_t free_bytes(int device);
  // Returns how many bytes a device has: Options::memory_bytes.
  size_t total_bytes() const;

  // Puts memory, all of it 0, behind reserved addresses; the caller has taken the bytes. Returns
  // false, and changes nothing, if some of the addresses have memory.
  bool Map(void* begin, size_t bytes);
  // Takes the memory from behind the addresses. Returns false unless some calls of Map have put
  // exactly this memory there.
  bool Unmap(void* begin, size_t bytes);
  // Lets kernels touch mapped memory. Returns false if the addresses aren't exactly those of some
  // calls of Map.
  bool Allow(void* begin, size_t bytes);

  // Returns memory that the device's kernels may touch, as cudaMalloc does, or nullptr if fewer
  // bytes, in whole pages, or addresses are free.
  void* Allocate(int device, size_t bytes);
  // Frees what Allocate has returned. Returns false, and frees nothing, if `begin` isn't the
  // beginning of such memory.
  bool Free(void* begin);

  // Returns where a copy finds the memory at an address. For a device's memory that is its second
  // address, where the host can always touch it; for the host's it is the same address.
  void* Always(const void* address) const {
    return static_cast<char*>(const_cast<void*>(address)) +
           (IsOfDevice(address) ? kAddressBytes : 0);
  }

  // Lets the process touch the devices' memory at its first addresses, as kernels do, until the
  // calling thread calls Close. Does nothing if the thread has opened it already: a thread that
  // does a stream's work opens it for the first kernel, and closes it when the stream is idle or
  // its wait ends, since hiding it takes longer than most kernels of tests.
  void Open();
  // Hides the memory from the host, unless other threads have opened it. Does nothing if the thread
  // hasn't opened it.
  void Close();

 private:
  static constexpr size_t kAddressBytes = size_t{32} << 40;

  struct Range {
    size_t bytes;
    bool is_allowed;
    bool is_allocated;  // by Allocate
  };

  // A stretch that the thread has found. It is still there if `changes` is changes_.
  struct Known {
    uint64_t changes = 0;
    uintptr_t begin = 0;
    uintptr_t end = 0;
    int device = 0;
  };
  static constexpr size_t kKnown = 4;

  DeviceMemory();
  // Returns whether a stretch of allowed ranges without a gap has all of the bytes. The thread
  // keeps the stretch in knowns_.
  bool Find(uintptr_t begin, size_t bytes);
  // Puts memory, hidden and all of it 0, behind both addresses. Ends the process if there is none.
  static void Fill(void* begin, size_t bytes);
  // Calls visit(begin, bytes) for each stretch of allowed ranges without a gap. With mutex_.
  template <class Visit>
  void ForEachStretch(const Visit& visit) const;
  // Adds to ranges_. With mutex_.
  void AddRange(uintptr_t begin, const Range& range);

  static constinit thread_local std::array<Known, kKnown> knowns_;
  static constinit thread_local size_t oldest_known_;
  static constinit thread_local bool has_opened_;

  // What each device has.
  struct Usage {
    size_t reserved = 0;  // addresses from the device's first on
    size_t taken = 0;     // bytes of memory
  };

  uintptr_t begin_ = 0;
  const size_t of_each_;  // addresses of each device
  // How often ranges_ has changed. After a change, threads look up the ranges again.
  std::atomic<uint64_t> changes_ = 1;
  std::mutex mutex_;
  std::vector<Usage> usage_;  // by device
  std::map<uintptr_t, Range> ranges_;
  int open_ = 0;  // threads that have opened it
};

}  // namespace skiff::cuda_emulation
