// The allocator of every place. It cuts blocks out of segments that it takes from a SegmentSource,
// and caches freed blocks for reuse.
//
// - Best fit: the smallest free block that is large enough, the lowest of equals. The remainder is
//   split off; a freed block merges with its free neighbours in the segment. Small freed blocks may
//   first be parked for requests of exactly their size.
// - Each size class has separate segments: a long-lived small block doesn't keep a large block from
//   merging again.
// - Each stream has its own blocks. The next allocation of the same stream may take a freed block
//   at once, since a stream executes its work in order. A block that other streams used, too, waits
//   for their events.
// - A call takes O(log n) time for n blocks. In a steady state it allocates nothing from the heap.
//   Calls to the system cost extra.
//
// Before an allocation fails, the allocator waits for all blocks that wait for streams, returns
// everything cached to the system, tries smaller segments than usual, and tries free memory of
// other classes.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/allocator.h"
#include "memory/block_class.h"
#include "memory/free_block_index.h"
#include "memory/segment_source.h"

namespace skiff {

struct CachingOptions {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  Place place;
  std::string name;  // names the memory in errors: "cpu", "cuda:0", "pinned"
  std::vector<BlockClass> classes;
  // The most free memory to keep of what could be returned to the system.
  int64_t max_cached_bytes = kUnbounded;
  // If bounded: before taking more memory, the allocator returns enough cached memory that reserved
  // bytes exceed the peak of bytes in blocks by at most this. So on top of the bytes needed at once
  // at the peak, caching costs at most this number.
  int64_t slack_beyond_peak_bytes = kUnbounded;
  // Under AddressSanitizer, the number of poisoned bytes after each block of host memory, which
  // reveal writes past its end. Ignored otherwise.
  int64_t redzone_bytes = 64;
};

class CachingAllocator final : public Allocator {
 public:
  // `events` may be nullptr if there are no streams; all streams then count as one.
  explicit CachingAllocator(CachingOptions options, std::unique_ptr<StreamEvents> events = nullptr);
  // Waits for streams, then returns all memory to the system, including live blocks.
  ~CachingAllocator() override;

  Place place() const override { return options_.place; }
  void* Allocate(int64_t bytes, const AllocationOptions& options = {}) override;
  void Free(void* address, int64_t bytes) noexcept override;
  void RecordUse(void* address, void* stream) override;
  void ReleaseCached() override;
  void SetLimit(int64_t bytes) override;
  AllocatorStatistics statistics() const override;
  void ResetPeaks() override;

 private:
  struct Request {
    BlockPool* pool;
    int64_t bytes;  // of the block, rounded
  };
  // A freed block that waits for a stream.
  struct Awaited {
    void* event;
    SegmentBlock* block;
  };

  Request RequestOf(int64_t bytes, const AllocationOptions& options);
  BlockPool& PoolOf(size_t class_index, void* stream);
  [[noreturn]] void ThrowOutOfMemory(int64_t bytes, MemoryTag tag) const;

  // Return a block from one source each, or nullptr if it has none.
  SegmentBlock* Find(const Request& request);
  SegmentBlock* TakeParked(const Request& request);
  SegmentBlock* TakeReady(const Request& request);
  SegmentBlock* TakeMore(const Request& request);
  SegmentBlock* TakeFromNewSegment(const Request& request, int64_t segment_bytes);
  SegmentBlock* TakeFromOtherClasses(const Request& request);
  // Takes the request out of a free block that is large enough. Returns nullptr if the block lacks
  // memory and can't get it.
  SegmentBlock* TakeFrom(SegmentBlock* block, const Request& request);

  SegmentBlock* AddSegment(BlockPool* pool, int64_t bytes);
  bool Commit(MemorySegment* segment, ByteRange range);
  // Returns to the system the part of a free block that the system can take. The block is deleted
  // if it was a whole segment.
  void GiveBackBlock(SegmentBlock* block);
  // Returns at least `bytes` of free memory to the system, or all of it, except that of `kept`.
  void GiveBack(int64_t bytes, const SegmentBlock* kept = nullptr);
  // Returns whether `more` bytes may be reserved, after returning cached memory if need be.
  bool MakeRoom(int64_t more, int64_t block_bytes, const SegmentBlock* kept);

  SegmentBlock* NewBlock(const SegmentBlock& block);
  void DeleteBlock(SegmentBlock* block);
  // Splits `bytes` off the beginning of an unlisted block. Returns the rest.
  SegmentBlock* SplitOff(SegmentBlock* block, int64_t bytes);
  // Parks or frees a block that nothing uses any more.
  void Retire(SegmentBlock* block);
  // Merges a block with its free neighbours, and lists the result.
  void MakeFree(SegmentBlock* block);
  void JoinParked(BlockPool* pool);
  void JoinAllParked();

  void HandOut(SegmentBlock* block, int64_t bytes, MemoryTag tag);
  void AddReserved(int64_t bytes);

  // Free the blocks whose streams are done.
  void AwaitStreams(SegmentBlock* block);
  void CollectDone();
  void WaitForStreams();
  void Finish(const Awaited& awaited);

  const CachingOptions options_;
  const std::unique_ptr<StreamEvents> events_;
  mutable std::mutex mutex_;
  // Provides the memory of all containers below that grow and shrink with the blocks. It keeps all
  // memory taken from the heap.
  std::pmr::unsynchronized_pool_resource memory_;
  std::map<std::pair<void*, size_t>, BlockPool> pools_;  // by stream and class
  FreeBlockIndex index_{&memory_};
  // By address: blocks that are live, parked, or waiting for streams.
  std::pmr::unordered_map<void*, SegmentBlock*> blocks_{&memory_};
  std::map<void*, std::deque<Awaited>> awaited_;  // by stream, in the order of its work
  int64_t block_bytes_ = 0;                       // live and waiting blocks, as rounded
  int64_t peak_block_bytes_ = 0;
  std::string failure_;  // the system's last reason, during an allocation
  AllocatorStatistics statistics_;
};

}  // namespace skiff
