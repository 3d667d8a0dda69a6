// Memory of the CPU.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/caching_allocator.h"
#include "memory/segment_source.h"

namespace skiff {

// Pages of the system (mmap). A page takes memory when it is first written, so committing costs
// nothing; decommitted ones are given back (MADV_DONTNEED). Segments that are asked for at a
// multiple of a huge page (2 MiB) get huge pages where the kernel leaves it to programs, but for
// the rest behind the last whole one: so they take no more memory than on small pages.
std::unique_ptr<SegmentSource> MakePageSource();

// Blocks below 64 KiB, below 4 MiB, and larger ones, which begin at a huge page: a step walks over
// hundreds of megabytes, whose addresses then fit into the processor's translation buffers. At most
// 256 MiB of free memory is kept, and nothing that would raise the peak of reserved bytes by more
// than 2 MiB beyond what blocks needed at once.
//
// Under AddressSanitizer each block is malloc's, and nothing is kept: so the sanitizer sees leaks,
// uses after the end of a block and after its life, and knows who allocated it.
CachingOptions CpuCachingOptions();

// The process-wide one.
Allocator& CpuAllocator();

}  // namespace skiff
