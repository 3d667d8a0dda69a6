// The parts of a caching allocator's segments, and the orders in which the free ones are found.
// Part of CachingAllocator, which documents the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <set>
#include <vector>

#include "memory/allocator_statistics.h"
#include "memory/byte_range_set.h"

namespace skiff {

struct BlockClass;
struct BlockPool;

// What a source gave in one piece. Blocks fill it without a gap.
struct MemorySegment {
  BlockPool* pool;
  char* address;
  int64_t bytes;
  // Offsets without memory behind them; all lie in free blocks.
  ByteRangeSet uncommitted;
};

// Neighbours in a segment are never both free.
struct MemoryBlock {
  MemorySegment* segment;
  int64_t offset;
  int64_t bytes;
  MemoryBlock* previous = nullptr;
  MemoryBlock* next = nullptr;

  // Of a free one: bytes from the first aligned one on, bytes without memory, and bytes that the
  // system can have back.
  bool is_free = false;
  int64_t usable_bytes = 0;
  int64_t uncommitted_bytes = 0;
  int64_t releasable_bytes = 0;

  // Of a live one.
  bool is_live = false;
  int64_t requested_bytes = 0;
  MemoryTag tag = MemoryTag::kOther;
  std::vector<void*> other_streams;
  // Of one that was freed and waits for its streams.
  size_t awaited_events = 0;

  int64_t end() const { return offset + bytes; }
  ByteRange range() const { return {offset, end()}; }
  char* address() const { return segment->address + offset; }
  // The offset of its first byte at a multiple of `alignment`; may lie behind its end.
  int64_t AlignedOffset(int64_t alignment) const;
  bool is_whole_segment() const { return bytes == segment->bytes; }
};

// By size, then by address. Compares with a size too: of equal size, all blocks come behind it.
struct ByUsableBytes {
  using is_transparent = void;
  bool operator()(const MemoryBlock* a, const MemoryBlock* b) const;
  bool operator()(const MemoryBlock* a, int64_t bytes) const { return a->usable_bytes < bytes; }
};
struct ByReleasableBytes {
  using is_transparent = void;
  bool operator()(const MemoryBlock* a, const MemoryBlock* b) const;
  bool operator()(const MemoryBlock* a, int64_t bytes) const { return a->releasable_bytes < bytes; }
};

// The free blocks of a class and a stream.
struct BlockPool {
  using FreeBlocks = std::pmr::set<MemoryBlock*, ByUsableBytes>;

  BlockPool(const BlockClass& block_class, void* stream, std::pmr::memory_resource* memory);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  const BlockClass& block_class;
  void* const stream;
  FreeBlocks ready;    // with memory behind every byte
  FreeBlocks partial;  // all others

  // Blocks in no use that aren't joined with their neighbours, by size: entry i has those of i
  // times the class's rounding. Empty if the class parks none.
  std::vector<std::vector<MemoryBlock*>> parked;
  int64_t parked_bytes = 0;
  // nullptr for a size that isn't parked.
  std::vector<MemoryBlock*>* ParkedOf(int64_t block_bytes);
};

// The least of the blocks with as many usable bytes; nullptr if none has.
MemoryBlock* BestFit(const BlockPool::FreeBlocks& blocks, int64_t bytes);

class FreeBlockIndex {
 public:
  explicit FreeBlockIndex(std::pmr::memory_resource* memory) : releasable_(memory) {}

  // Marks a block as free and enters it: under its pool, and under what can be given back.
  void List(MemoryBlock* block);
  void Unlist(MemoryBlock* block);

  // The least block that can give back as many bytes, else the one that gives back the most; `kept`
  // is passed over. nullptr if there is none.
  MemoryBlock* BestToRelease(int64_t bytes, const MemoryBlock* kept) const;
  int64_t releasable_bytes() const { return releasable_bytes_; }

 private:
  std::pmr::set<MemoryBlock*, ByReleasableBytes> releasable_;
  int64_t releasable_bytes_ = 0;
};

// What of a free block the source can take back: the whole segment, or the granules that lie
// within the block; empty if nothing.
ByteRange ReleasableRange(const MemoryBlock& block);

}  // namespace skiff
