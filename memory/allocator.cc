#include "memory/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#ifdef WITH_CUDA
#include "memory/cuda_allocator.h"
#endif

namespace skiff {
namespace {

// Of x86-64 and of most other processors.
constexpr int64_t kHugePage = int64_t{2} << 20;

// nullptr if there is no memory. Blocks of many pages begin at a huge page and ask for such, where
// the kernel leaves it to programs: a step walks over hundreds of megabytes, whose addresses then
// fit into the processor's translation buffers. What doesn't fill a huge page stays on small ones,
// so a block takes no more memory than without.
void* AllocateAligned(int64_t bytes) {
  const bool is_large = bytes >= 2 * kHugePage;
  void* block = nullptr;
  // Not std::aligned_alloc, which wants the size to be a multiple of the alignment.
  const int error = posix_memalign(&block, is_large ? kHugePage : kBufferAlignment,
                                   RoundUp(bytes, kBufferAlignment));
  if (error != 0) return nullptr;
  // Without the advice it works as well, but slower.
  if (is_large) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return block;
}

class CpuAllocator final : public Allocator {
 public:
  Place place() const override { return Place::Cpu(); }

  void* Allocate(int64_t bytes) override {
    SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, "allocation of ", bytes, " bytes");
    if (bytes == 0) return nullptr;
    SKIFF_ENFORCE(bytes <= INT64_MAX - kBufferAlignment, kResourceExhausted,
                  "out of memory on cpu: ", bytes, " bytes asked for");
    void* block = AllocateAligned(bytes);
    SKIFF_ENFORCE(block != nullptr, kResourceExhausted, "out of memory on cpu: ", bytes,
                  " bytes asked for, ", live_bytes_.load(), " bytes live");
    allocations_.fetch_add(1, std::memory_order_relaxed);
    const int64_t live = live_bytes_.fetch_add(bytes) + bytes;
    int64_t peak = peak_bytes_.load();
    while (peak < live && !peak_bytes_.compare_exchange_weak(peak, live)) {
    }
    return block;
  }

  void Free(void* block, int64_t bytes) noexcept override {
    if (block == nullptr) return;
    std::free(block);
    live_bytes_.fetch_sub(bytes);
  }

  AllocatorStatistics statistics() const override {
    return {live_bytes_.load(), peak_bytes_.load(), allocations_.load()};
  }

 private:
  std::atomic<int64_t> live_bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace

Allocator& AllocatorOf(Place place) {
  // Never destroyed: tensors with static lifetime may return blocks at exit.
  static CpuAllocator& cpu = *new CpuAllocator;
  if (place.is_cpu()) {
    SKIFF_ENFORCE(place.index == 0, kInvalidArgument, "there is no place cpu:", place.index);
    return cpu;
  }
#ifdef WITH_CUDA
  return CudaAllocatorOf(place.index);
#else
  Throw(ErrorCode::kFailedPrecondition, "place ", place, ": built without CUDA");
#endif
}

Buffer::Buffer(Allocator& allocator, int64_t bytes)
    : allocator_(&allocator),
      data_(allocator.Allocate(bytes)),
      bytes_(bytes),
      place_(allocator.place()) {}

Buffer::Buffer(void* borrowed, int64_t bytes, Place place)
    : allocator_(nullptr), data_(borrowed), bytes_(bytes), place_(place) {}

Buffer::~Buffer() {
  if (allocator_ != nullptr) allocator_->Free(data_, bytes_);
}

}  // namespace skiff
