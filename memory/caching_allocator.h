// The allocator behind every place: cuts blocks out of segments that it takes from a
// SegmentSource, keeps what is freed, and gives it out again.
//
// - Best fit: of the free blocks that are large enough the smallest, the lowest of equals. What is
//   left over is split off; a freed block joins its free neighbours in the segment. Small blocks
//   may be parked before, for requests of the same size.
// - Sizes of different classes lie in segments of their own, so that a small block that lives long
//   keeps no large one from coming together again.
// - Each stream has its blocks. A freed block goes to the next allocation of its stream at once,
//   since the stream does one after the other; one that other streams use too waits for events.
// - A call takes O(log n) for n blocks, and no memory of the heap in the long run, apart from what
//   it gives back to the system, whose cost lies there.
//
// Before an allocation fails, what waits for streams is waited for, everything cached is given
// back, smaller segments are tried than usual, and so is free memory of other classes.
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
#include "memory/free_block_index.h"
#include "memory/segment_source.h"

namespace skiff {

// Blocks of neighbouring sizes, which share segments.
struct BlockClass {
  std::shared_ptr<SegmentSource> source;
  // The largest block that belongs to it, in bytes. Classes ascend; the last has no bound.
  int64_t max_block_bytes = std::numeric_limits<int64_t>::max();
  // The usual size of a segment; one of a larger block, and one of a class with 0, is made for its
  // block. Where the source commits memory later, a segment costs only addresses.
  int64_t segment_bytes = 0;
  // Freed blocks that are kept as they are, up to so many bytes a stream, for requests of their
  // very size: cheaper than joining and splitting. More than half as many are joined before more
  // memory is taken, and all before an allocation fails. Only for a class with a bound.
  int64_t max_parked_bytes = 0;
  int64_t rounding = kBufferAlignment;   // blocks are multiples of this, in bytes
  int64_t alignment = kBufferAlignment;  // of the beginnings of blocks; a power of two
};

struct CachingOptions {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  Place place;
  std::string name;  // of the memory, for errors: "cpu", "cuda:0", "pinned"
  std::vector<BlockClass> classes;
  // Of free memory that could be given back, the most to keep.
  int64_t max_cached_bytes = kUnbounded;
  // If bounded: before more memory is taken, cached memory is given back as far as reserved bytes
  // would exceed the peak of those in blocks by more than this. So caching never costs more than
  // this on top of what is needed at once at the peak.
  int64_t slack_beyond_peak_bytes = kUnbounded;
  // Poisoned bytes behind each block of host memory under AddressSanitizer, which finds writes
  // beyond the end there; nothing without it.
  int64_t redzone_bytes = 64;
};

class CachingAllocator final : public Allocator {
 public:
  // `events`: nullptr where no streams are; every stream is the same one then.
  explicit CachingAllocator(CachingOptions options, std::unique_ptr<StreamEvents> events = nullptr);
  // Waits for streams, and gives everything back, live blocks too.
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
    MemoryBlock* block;
  };

  Request RequestOf(int64_t bytes, const AllocationOptions& options);
  BlockPool& PoolOf(size_t class_index, void* stream);
  [[noreturn]] void ThrowOutOfMemory(int64_t bytes, MemoryTag tag) const;

  // Where a block may come from; nullptr if not from there.
  MemoryBlock* Find(const Request& request);
  MemoryBlock* TakeParked(const Request& request);
  MemoryBlock* TakeReady(const Request& request);
  MemoryBlock* TakeMore(const Request& request);
  MemoryBlock* TakeFromNewSegment(const Request& request, int64_t segment_bytes);
  MemoryBlock* TakeFromOtherClasses(const Request& request);
  // Out of a free block that is large enough; nullptr if it lacks memory and can't have it.
  MemoryBlock* TakeFrom(MemoryBlock* block, const Request& request);

  MemoryBlock* AddSegment(BlockPool* pool, int64_t bytes);
  bool Commit(MemorySegment* segment, ByteRange range);
  // Gives back what the system can have of a free block, which is gone if it was all of a segment.
  void GiveBackBlock(MemoryBlock* block);
  // Gives free memory back until it is at least `bytes`, or all of it; `kept` is left alone.
  void GiveBack(int64_t bytes, const MemoryBlock* kept = nullptr);
  // Whether `more` bytes of memory may be reserved, if need be after giving some back.
  bool MakeRoom(int64_t more, int64_t block_bytes, const MemoryBlock* kept);

  MemoryBlock* NewBlock(const MemoryBlock& block);
  void DeleteBlock(MemoryBlock* block);
  // Splits `bytes` off the beginning of an unlisted block; gives the rest.
  MemoryBlock* SplitOff(MemoryBlock* block, int64_t bytes);
  // Nothing uses the block any more: parks it or makes it free.
  void Retire(MemoryBlock* block);
  // Joins a block with its free neighbours, and lists it.
  void MakeFree(MemoryBlock* block);
  void JoinParked(BlockPool* pool);
  void JoinAllParked();

  void HandOut(MemoryBlock* block, int64_t bytes, MemoryTag tag);
  void AddReserved(int64_t bytes);

  // Blocks whose streams are done become free.
  void AwaitStreams(MemoryBlock* block);
  void CollectDone();
  void WaitForStreams();
  void Finish(const Awaited& awaited);

  const CachingOptions options_;
  const std::unique_ptr<StreamEvents> events_;
  mutable std::mutex mutex_;
  // Under all containers below that grow and shrink with the blocks: what it took, it keeps.
  std::pmr::unsynchronized_pool_resource memory_;
  std::map<std::pair<void*, size_t>, BlockPool> pools_;  // by stream and class
  FreeBlockIndex index_{&memory_};
  // By address: those that are live, are parked, or wait for streams.
  std::pmr::unordered_map<void*, MemoryBlock*> blocks_{&memory_};
  std::map<void*, std::deque<Awaited>> awaited_;  // by stream, in the order of its work
  int64_t block_bytes_ = 0;                       // of those that are live or wait, as rounded
  int64_t peak_block_bytes_ = 0;
  std::string failure_;  // the system's last reason, in this allocation
  AllocatorStatistics statistics_;
};

}  // namespace skiff
