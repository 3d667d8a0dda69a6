// Memory between pages without access: a read or a write beyond its end is a fault at once, where
// it happens. For tests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "memory/allocator.h"
#include "memory/byte_range_set.h"

namespace skiff {

int64_t PageBytes();

// Returns the offset for a block of `bytes` behind `*end`, a multiple of a page: the block ends as
// near to the next page as the alignment, a power of two, allows. Moves `*end` beyond the next
// page, which becomes a guard. Throws Error (kResourceExhausted) above 2^60 bytes.
int64_t PlaceGuarded(int64_t bytes, int64_t alignment, int64_t* end);

// Returns at least `bytes` of memory of the CPU's allocator, from the begin of a page. Only pages
// with bytes of `used` can be accessed. Throws an Error (kResourceExhausted) if there is no memory,
// or if the system allows no more guards.
std::shared_ptr<Buffer> GuardedMemory(int64_t bytes, std::span<const ByteRange> used,
                                      MemoryTag tag = CurrentMemoryTag());
// Takes the access to all other pages from a part of such memory, which begins with a page.
void GuardPart(void* begin, int64_t bytes, std::span<const ByteRange> used);

// Returns a block that ends at a guard, as far as the alignment allows.
std::shared_ptr<Buffer> GuardedBlock(int64_t bytes, int64_t alignment,
                                     MemoryTag tag = CurrentMemoryTag());

// Returns whether a block of GuardedBlock without bytes before the guard may end here.
bool EndsWithPage(const void* end);

}  // namespace skiff
