#include "framework/executor/storage/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/places.h"

namespace skiff {
namespace {

constexpr int64_t kLimitBytes = int64_t{1} << 60;

void SetAccess(char* begin, int64_t bytes, int access) {
  if (bytes == 0) return;
  SKIFF_ENFORCE(mprotect(begin, static_cast<size_t>(bytes), access) == 0, kResourceExhausted,
                "mprotect of ", bytes, " bytes: ", std::strerror(errno));
}

// A block of the allocator with whole pages in it, and the part of them that others see.
class GuardedPages {
 public:
  GuardedPages(int64_t bytes, ByteRange seen, MemoryTag tag)
      : block_(AllocatorOf(Place::Cpu()), bytes + PageBytes(), {.tag = tag}),
        bytes_(bytes),
        begin_(FirstPage(block_)),
        view_(begin_ + seen.begin, seen.end - seen.begin, Place::Cpu()) {}
  // The allocator gives the block to others. There are no more guards then, so this can't fail.
  ~GuardedPages() { mprotect(begin_, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  static std::shared_ptr<Buffer> Make(int64_t bytes, ByteRange seen,
                                      std::span<const ByteRange> used, MemoryTag tag) {
    auto pages = std::make_shared<GuardedPages>(RoundUp(bytes, PageBytes()), seen, tag);
    GuardPart(pages->begin_, pages->bytes_, used);
    return {pages, &pages->view_};
  }

 private:
  static char* FirstPage(const Buffer& block) {
    const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(block.data()));
    return static_cast<char*>(block.data()) + (RoundUp(address, PageBytes()) - address);
  }

  const Buffer block_;
  const int64_t bytes_;  // whole pages
  char* const begin_;
  Buffer view_;
};

}  // namespace

int64_t PageBytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

int64_t PlaceGuarded(int64_t bytes, int64_t alignment, int64_t* end) {
  const int64_t begin = RoundUp(*end, std::max(alignment, PageBytes()));
  SKIFF_ENFORCE(bytes <= kLimitBytes - begin, kResourceExhausted, "buffers of more than ",
                kLimitBytes, " bytes in all");
  const int64_t guard = RoundUp(begin + bytes, PageBytes());
  *end = guard + PageBytes();
  return (guard - bytes) / alignment * alignment;
}

void GuardPart(void* begin, int64_t bytes, std::span<const ByteRange> used) {
  ByteRangeSet pages;
  for (const ByteRange& range : used) {
    if (range.begin == range.end) continue;
    pages.Insert({range.begin / PageBytes() * PageBytes(), RoundUp(range.end, PageBytes())});
  }
  for (const ByteRange& guard : pages.MissingWithin({0, bytes})) {
    SetAccess(static_cast<char*>(begin) + guard.begin, guard.end - guard.begin, PROT_NONE);
  }
}

std::shared_ptr<Buffer> GuardedMemory(int64_t bytes, std::span<const ByteRange> used,
                                      MemoryTag tag) {
  return GuardedPages::Make(bytes, {0, bytes}, used, tag);
}

std::shared_ptr<Buffer> GuardedBlock(int64_t bytes, int64_t alignment, MemoryTag tag) {
  int64_t end = 0;
  const int64_t begin = PlaceGuarded(bytes, alignment, &end);
  const ByteRange block{begin, begin + bytes};
  return GuardedPages::Make(end, block, {&block, 1}, tag);
}

bool EndsWithPage(const void* end) {
  return reinterpret_cast<uintptr_t>(end) % static_cast<uintptr_t>(PageBytes()) == 0;
}

}  // namespace skiff
