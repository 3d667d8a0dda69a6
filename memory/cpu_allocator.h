// The allocator of CPU memory.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/caching_allocator.h"
#include "memory/segment_source.h"

namespace skiff {

// Returns a source of system pages (mmap). A page takes memory when it is first written, so
// committing costs nothing; decommitted pages go back to the system (MADV_DONTNEED). If the
// requested alignment is a huge page (2 MiB) or more, the whole huge pages of the segment are
// advised to be huge, where the kernel lets programs decide. The rest uses small pages, so the
// segment takes no more memory than on small pages alone.
std::unique_ptr<SegmentSource> MakePageSource();

// Returns the options of the process-wide allocator. Its classes are blocks below 64 KiB, below 4
// MiB, and larger ones. The latter begin at a huge page: a training step walks over hundreds of
// megabytes, whose addresses then fit into the processor's translation buffers. It caches at most
// 256 MiB, and nothing that would raise the peak of reserved bytes by more than 2 MiB over what
// blocks needed at once.
CachingOptions CpuCachingOptions();

// Returns the process-wide allocator. Under AddressSanitizer it takes each block from malloc and
// caches nothing, so that the sanitizer finds leaks, overruns and uses after free, and can tell who
// allocated a block.
Allocator& CpuAllocator();

}  // namespace skiff
