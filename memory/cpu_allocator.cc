#include "memory/cpu_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr int64_t kKilobyte = 1024;
constexpr int64_t kMegabyte = 1024 * kKilobyte;
// The size on x86-64 and most other processors.
constexpr int64_t kHugePage = 2 * kMegabyte;
// In a block of two huge pages or more, whole huge pages make up at least half.
constexpr int64_t kMaxBlockOnSmallPages = 2 * kHugePage - 1;

class PageSource final : public SegmentSource {
 public:
  void* Reserve(int64_t bytes, int64_t alignment) override {
    // mmap aligns only to small pages, so map more and keep the aligned part.
    const int64_t margin = alignment > page_ ? alignment : 0;
    void* mapped = mmap(nullptr, static_cast<size_t>(bytes + margin), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      error_ = errno;
      return nullptr;
    }
    char* segment = margin == 0 ? static_cast<char*>(mapped)
                                : KeepAligned(static_cast<char*>(mapped), bytes, alignment);
    // An error is ignored: without huge pages the memory is only slower.
    if (alignment >= kHugePage && bytes >= kHugePage) {
      madvise(segment, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
    }
    return segment;
  }

  void Release(void* segment, int64_t bytes) noexcept override {
    munmap(segment, static_cast<size_t>(bytes));
  }

  int64_t commit_granularity() const override { return page_; }

  // The addresses stay mapped; the next write to a page gets a new one, filled with zeros.
  void Decommit(void* begin, int64_t bytes) noexcept override {
    madvise(begin, static_cast<size_t>(bytes), MADV_DONTNEED);
  }

  bool is_host_memory() const override { return true; }
  std::string failure() const override { return StrCat("mmap: ", std::strerror(error_)); }

 private:
  // Unmaps what is before and after the aligned part.
  static char* KeepAligned(char* mapped, int64_t bytes, int64_t alignment) {
    const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(mapped));
    const int64_t before = RoundUp(address, alignment) - address;
    const int64_t after = alignment - before;
    if (before > 0) munmap(mapped, static_cast<size_t>(before));
    if (after > 0) munmap(mapped + before + bytes, static_cast<size_t>(after));
    return mapped + before;
  }

  const int64_t page_ = sysconf(_SC_PAGESIZE);
  int error_ = 0;
};

#ifdef __SANITIZE_ADDRESS__

class MallocSource final : public SegmentSource {
 public:
  void* Reserve(int64_t bytes, int64_t alignment) override {
    void* segment = nullptr;
    error_ = posix_memalign(&segment, static_cast<size_t>(alignment), static_cast<size_t>(bytes));
    return error_ == 0 ? segment : nullptr;
  }
  void Release(void* segment, int64_t /*bytes*/) noexcept override { std::free(segment); }
  // The sanitizer poisons malloc's blocks itself.
  bool is_host_memory() const override { return false; }
  std::string failure() const override { return StrCat("malloc: ", std::strerror(error_)); }

 private:
  int error_ = 0;
};

// Segments of one block each, and nothing cached: every block is one of malloc's, which is what the
// sanitizer can check.
CachingOptions OptionsOfProcess() {
  const auto source = std::make_shared<MallocSource>();
  return {.place = Place::Cpu(),
          .name = "cpu",
          .classes = {{.source = source, .max_block_bytes = kMaxBlockOnSmallPages, .rounding = 1},
                      {.source = source, .rounding = 1, .alignment = kHugePage}},
          .max_cached_bytes = 0};
}

#else

CachingOptions OptionsOfProcess() { return CpuCachingOptions(); }

#endif

}  // namespace

std::unique_ptr<SegmentSource> MakePageSource() { return std::make_unique<PageSource>(); }

CachingOptions CpuCachingOptions() {
  const std::shared_ptr<SegmentSource> pages = MakePageSource();
  return {.place = Place::Cpu(),
          .name = "cpu",
          .classes = {{.source = pages,
                       .max_block_bytes = 64 * kKilobyte - 1,
                       .segment_bytes = 1 * kMegabyte,
                       .max_parked_bytes = kMegabyte / 2},
                      {.source = pages,
                       .max_block_bytes = kMaxBlockOnSmallPages,
                       .segment_bytes = 32 * kMegabyte},
                      {.source = pages, .rounding = 4 * kKilobyte, .alignment = kHugePage}},
          .max_cached_bytes = 256 * kMegabyte,
          .slack_beyond_peak_bytes = 2 * kMegabyte};
}

Allocator& CpuAllocator() {
  // Never destroyed: tensors with static lifetime may return blocks at exit.
  static CachingAllocator& allocator = *new CachingAllocator(OptionsOfProcess());
  return allocator;
}

}  // namespace skiff
