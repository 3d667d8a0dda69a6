#include "tests/harness/allocation_count.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<int64_t> own_count{0};
std::atomic<int64_t> onednn_count{0};

// Counts by the caller's address: oneDNN allocates inside its primitives, which Skiff can't
// prevent.
bool IsInOnednn(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

void* Allocate(size_t bytes, size_t alignment, const void* caller) noexcept {
  ++(IsInOnednn(caller) ? onednn_count : own_count);
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes == 0 ? 1 : bytes) == 0 ? block : nullptr;
}

void* OrThrow(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

constexpr size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

// Replaces all forms of operator new and delete. The array forms of the library call these.
void* operator new(size_t bytes) {
  return OrThrow(Allocate(bytes, kUsual, __builtin_return_address(0)));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kUsual, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return OrThrow(Allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0)));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }

namespace skiff::harness {

AllocationCount CountAllocations() { return {own_count, onednn_count}; }

}  // namespace skiff::harness
