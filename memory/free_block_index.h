// The data structures of CachingAllocator, which documents the whole: segments, their blocks, and
// indices to find free blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <set>
#include <vector>

#include "memory/allocator_statistics.h"
#include "memory/block_class.h"
#include "memory/byte_range_set.h"

namespace skiff {

struct BlockPool;

// A contiguous piece from a source. Blocks fill it without gaps.
struct MemorySegment {
  BlockPool* pool;
  char* address;
  int64_t bytes;
  // Offsets to which no memory is mapped. All are in free blocks.
  ByteRangeSet uncommitted;
};

// A part of a segment. Two neighbours are never both free.
struct SegmentBlock {
  MemorySegment* segment;
  int64_t offset;
  int64_t bytes;
  SegmentBlock* previous = nullptr;
  SegmentBlock* next = nullptr;

  // If free: the bytes from the first aligned one on; the bytes without memory; the bytes that the
  // system can take back.
  bool is_free = false;
  int64_t usable_bytes = 0;
  int64_t uncommitted_bytes = 0;
  int64_t releasable_bytes = 0;

  // If live.
  bool is_live = false;
  int64_t requested_bytes = 0;
  MemoryTag tag = MemoryTag::kOther;
  std::vector<void*> other_streams;
  // If freed and waiting for streams.
  size_t awaited_events = 0;

  int64_t end() const { return offset + bytes; }
  ByteRange range() const { return {offset, end()}; }
  char* address() const { return segment->address + offset; }
  // Returns the first offset in the segment, from the block's own on, whose address is a multiple
  // of `alignment`. May be beyond the block's end.
  int64_t AlignedOffset(int64_t alignment) const;
  bool is_whole_segment() const { return bytes == segment->bytes; }
};

// Order blocks by size, then by address. Also compare a block with a size, which comes before all
// blocks of that size.
struct ByUsableBytes {
  using is_transparent = void;
  bool operator()(const SegmentBlock* a, const SegmentBlock* b) const;
  bool operator()(const SegmentBlock* a, int64_t bytes) const { return a->usable_bytes < bytes; }
};
struct ByReleasableBytes {
  using is_transparent = void;
  bool operator()(const SegmentBlock* a, const SegmentBlock* b) const;
  bool operator()(const SegmentBlock* a, int64_t bytes) const {
    return a->releasable_bytes < bytes;
  }
};

// The free blocks of a class and a stream.
struct BlockPool {
  using FreeBlocks = std::pmr::set<SegmentBlock*, ByUsableBytes>;

  BlockPool(const BlockClass& block_class, void* stream, std::pmr::memory_resource* memory);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  const BlockClass& block_class;
  void* const stream;
  FreeBlocks ready;    // all bytes have memory
  FreeBlocks partial;  // all others

  // Parked blocks by size: entry i holds the blocks of i times the class's rounding. Empty if the
  // class parks none.
  std::vector<std::vector<SegmentBlock*>> parked;
  int64_t parked_bytes = 0;
  // Returns the list for a size, or nullptr if blocks of that size aren't parked.
  std::vector<SegmentBlock*>* ParkedOf(int64_t block_bytes);
};

// Returns the smallest block with at least `bytes` usable bytes, or nullptr.
SegmentBlock* BestFit(const BlockPool::FreeBlocks& blocks, int64_t bytes);

class FreeBlockIndex {
 public:
  explicit FreeBlockIndex(std::pmr::memory_resource* memory) : releasable_(memory) {}

  // Marks a block as free and adds it to the block's pool and to the blocks that can be given back.
  void List(SegmentBlock* block);
  void Unlist(SegmentBlock* block);

  // Returns the smallest block other than `kept` that can give back `bytes`, else the block that
  // can give back most, else nullptr.
  SegmentBlock* BestToRelease(int64_t bytes, const SegmentBlock* kept) const;
  int64_t releasable_bytes() const { return releasable_bytes_; }

 private:
  std::pmr::set<SegmentBlock*, ByReleasableBytes> releasable_;
  int64_t releasable_bytes_ = 0;
};

// Returns the part of a free block that the source can take back: the whole segment, or the
// granules that are entirely within the block, or an empty range.
ByteRange ReleasableRange(const SegmentBlock& block);

}  // namespace skiff
