#include "tests/framework/ir/live_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace skiff {
namespace {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

// nullptr if there is no memory.
void* Give(size_t bytes) {
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) return nullptr;
  const auto usable = static_cast<int64_t>(malloc_usable_size(block));
  const int64_t live = live_bytes.fetch_add(usable) + usable;
  int64_t peak = peak_bytes.load();
  while (peak < live && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return block;
}

void TakeBack(void* block) {
  if (block == nullptr) return;
  live_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(block)));
  std::free(block);
}

}  // namespace

int64_t LiveBytes() { return live_bytes; }
int64_t PeakBytes() { return peak_bytes; }
void ResetPeak() { peak_bytes = live_bytes.load(); }

}  // namespace skiff

void* operator new(size_t bytes) {
  void* block = skiff::Give(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return skiff::Give(bytes); }
void operator delete(void* block) noexcept { skiff::TakeBack(block); }
void operator delete(void* block, size_t) noexcept { skiff::TakeBack(block); }
