#include "memory/caching_allocator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/out_of_memory_error.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace skiff {
namespace {

// Rounding a larger request might overflow. No machine has that much memory.
constexpr int64_t kMaxRequestBytes = CachingOptions::kUnbounded / 4;

#ifdef __SANITIZE_ADDRESS__
constexpr bool kPoisons = true;
#else
constexpr bool kPoisons = false;
#endif

bool IsHostMemory(const BlockPool& pool) { return pool.block_class.source->is_host_memory(); }

// AddressSanitizer reports accesses to poisoned bytes.
void SetPoison([[maybe_unused]] const BlockPool& pool, [[maybe_unused]] void* begin,
               [[maybe_unused]] int64_t bytes, [[maybe_unused]] bool poisoned) {
#ifdef __SANITIZE_ADDRESS__
  if (!IsHostMemory(pool)) return;
  if (poisoned) {
    ASAN_POISON_MEMORY_REGION(begin, static_cast<size_t>(bytes));
  } else {
    ASAN_UNPOISON_MEMORY_REGION(begin, static_cast<size_t>(bytes));
  }
#endif
}

// Reports a caller's mistake from a function that can't throw.
[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

}  // namespace

CachingAllocator::CachingAllocator(CachingOptions options, std::unique_ptr<StreamEvents> events)
    : options_(std::move(options)), events_(std::move(events)) {
  SKIFF_ENFORCE(!options_.classes.empty() &&
                    options_.classes.back().max_block_bytes == CachingOptions::kUnbounded,
                kInvalidArgument, "allocator of ", options_.name,
                ": expected classes of blocks, the last without a bound");
  SKIFF_ENFORCE(options_.classes.back().max_parked_bytes == 0, kInvalidArgument, "allocator of ",
                options_.name, ": blocks are parked by size, expected a bound of their class");
}

CachingAllocator::~CachingAllocator() {
  WaitForStreams();
  // Live and parked blocks too, since their memory goes away with the allocator.
  while (!blocks_.empty()) MakeFree(blocks_.begin()->second);
  GiveBack(CachingOptions::kUnbounded);
}

// ---- what callers see

void* CachingAllocator::Allocate(int64_t bytes, const AllocationOptions& options) {
  SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, "allocation of ", bytes, " bytes on ", options_.name,
                ": expected 0 or more");
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  failure_.clear();
  if (bytes > kMaxRequestBytes) ThrowOutOfMemory(bytes, options.tag);
  // Here rather than in Free: asking for events costs driver calls, and only an allocation gains.
  CollectDone();
  SegmentBlock* block = Find(RequestOf(bytes, options));
  if (block == nullptr) ThrowOutOfMemory(bytes, options.tag);
  HandOut(block, bytes, options.tag);
  return block->address();
}

void CachingAllocator::HandOut(SegmentBlock* block, int64_t bytes, MemoryTag tag) {
  block->is_live = true;
  block->requested_bytes = bytes;
  block->tag = tag;
  SetPoison(*block->segment->pool, block->address(), bytes, false);
  block_bytes_ += block->bytes;
  peak_block_bytes_ = std::max(peak_block_bytes_, block_bytes_);
  ++statistics_.live_blocks;
  ++statistics_.allocations;
  statistics_.live_bytes += bytes;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
  TagStatistics& of_tag = statistics_.by_tag[static_cast<size_t>(tag)];
  ++of_tag.allocations;
  of_tag.live_bytes += bytes;
  of_tag.peak_bytes = std::max(of_tag.peak_bytes, of_tag.live_bytes);
}

void CachingAllocator::Free(void* address, int64_t bytes) noexcept {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second->is_live) {
    Die(StrCat("free on ", options_.name, ": no block at ", address, " is live"));
  }
  SegmentBlock* block = found->second;
  if (block->requested_bytes != bytes) {
    Die(StrCat("free on ", options_.name, ": ", bytes, " bytes at ", address, ": expected the ",
               block->requested_bytes, " that were allocated"));
  }
  block->is_live = false;
  SetPoison(*block->segment->pool, address, bytes, true);
  --statistics_.live_blocks;
  statistics_.live_bytes -= bytes;
  statistics_.by_tag[static_cast<size_t>(block->tag)].live_bytes -= bytes;
  if (!block->other_streams.empty()) AwaitStreams(block);
  if (block->awaited_events == 0) Retire(block);
}

void CachingAllocator::RecordUse(void* address, void* stream) {
  if (events_ == nullptr || address == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  SKIFF_ENFORCE(found != blocks_.end() && found->second->is_live, kInvalidArgument, "use on ",
                options_.name, ": no block at ", address, " is live");
  SegmentBlock& block = *found->second;
  const BlockPool& pool = *block.segment->pool;
  // No stream orders what the CPU does with its memory, so here even the block's own stream needs
  // an event.
  const bool is_ordered = stream == pool.stream && !IsHostMemory(pool);
  if (is_ordered || std::ranges::count(block.other_streams, stream) > 0) return;
  block.other_streams.push_back(stream);
}

void CachingAllocator::ReleaseCached() {
  const std::lock_guard lock(mutex_);
  // In this order: blocks that wait for streams may be parked when these are done, and only merged
  // blocks can make up whole segments or pages, which is what the system takes back.
  WaitForStreams();
  JoinAllParked();
  GiveBack(CachingOptions::kUnbounded);
}

void CachingAllocator::SetLimit(int64_t bytes) {
  SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, "memory limit of ", bytes, " bytes on ",
                options_.name, ": expected 0 (none) or more");
  const std::lock_guard lock(mutex_);
  statistics_.limit_bytes = bytes;
  JoinAllParked();
  MakeRoom(0, 0, nullptr);
}

AllocatorStatistics CachingAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void CachingAllocator::ResetPeaks() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_bytes = statistics_.live_bytes;
  statistics_.peak_reserved_bytes = statistics_.reserved_bytes;
  for (TagStatistics& tag : statistics_.by_tag) tag.peak_bytes = tag.live_bytes;
}

void CachingAllocator::ThrowOutOfMemory(int64_t bytes, MemoryTag tag) const {
  std::string reason = failure_;
  if (reason.empty() && bytes > kMaxRequestBytes) reason = "no machine has as much";
  throw OutOfMemoryError({.place = options_.place,
                          .memory = options_.name,
                          .tag = tag,
                          .requested_bytes = bytes,
                          .live_bytes = statistics_.live_bytes,
                          .reserved_bytes = statistics_.reserved_bytes,
                          .limit_bytes = statistics_.limit_bytes,
                          .reason = std::move(reason)});
}

// ---- where a block comes from

CachingAllocator::Request CachingAllocator::RequestOf(int64_t bytes,
                                                      const AllocationOptions& options) {
  size_t index = 0;
  while (bytes > options_.classes[index].max_block_bytes) ++index;
  const bool has_streams = events_ != nullptr && !options_.classes[index].source->is_host_memory();
  BlockPool& pool = PoolOf(index, has_streams ? options.stream : nullptr);
  const int64_t redzone = kPoisons && IsHostMemory(pool) ? options_.redzone_bytes : 0;
  return {.pool = &pool, .bytes = RoundUp(bytes + redzone, pool.block_class.rounding)};
}

BlockPool& CachingAllocator::PoolOf(size_t class_index, void* stream) {
  return pools_.try_emplace({stream, class_index}, options_.classes[class_index], stream, &memory_)
      .first->second;
}

// From cheap to expensive: a list look-up, a tree look-up, the system, waiting for devices, and
// returning everything cached so that the limit or the system allows a new segment. Blocks of other
// classes come last, because they spoil the separation of sizes.
SegmentBlock* CachingAllocator::Find(const Request& request) {
  if (SegmentBlock* block = TakeParked(request)) return block;
  if (SegmentBlock* block = TakeReady(request)) return block;
  // Merge parked blocks only if there are many. If they were merged each time, small blocks would
  // hardly ever be found by size.
  if (request.pool->parked_bytes > request.pool->block_class.max_parked_bytes / 2) {
    JoinParked(request.pool);
    if (SegmentBlock* block = TakeReady(request)) return block;
  }
  if (SegmentBlock* block = TakeMore(request)) return block;
  WaitForStreams();
  JoinAllParked();
  if (SegmentBlock* block = TakeReady(request)) return block;
  GiveBack(CachingOptions::kUnbounded);
  if (SegmentBlock* block = TakeMore(request)) return block;
  return TakeFromOtherClasses(request);
}

SegmentBlock* CachingAllocator::TakeParked(const Request& request) {
  BlockPool& pool = *request.pool;
  if (pool.parked_bytes == 0) return nullptr;
  std::vector<SegmentBlock*>* parked = pool.ParkedOf(request.bytes);
  if (parked == nullptr || parked->empty()) return nullptr;
  // The one parked last, whose bytes are the likeliest to be in a cache.
  SegmentBlock* block = parked->back();
  parked->pop_back();
  pool.parked_bytes -= block->bytes;
  return block;
}

SegmentBlock* CachingAllocator::TakeReady(const Request& request) {
  SegmentBlock* block = BestFit(request.pool->ready, request.bytes);
  return block == nullptr ? nullptr : TakeFrom(block, request);
}

// Takes memory from the system: for reserved addresses without memory, else in a new segment.
SegmentBlock* CachingAllocator::TakeMore(const Request& request) {
  if (SegmentBlock* partial = BestFit(request.pool->partial, request.bytes)) {
    if (SegmentBlock* block = TakeFrom(partial, request)) return block;
  }
  const BlockClass& block_class = request.pool->block_class;
  const int64_t granularity = std::max<int64_t>(block_class.source->commit_granularity(), 1);
  const int64_t least = RoundUp(request.bytes, granularity);
  const int64_t usual = RoundUp(std::max(least, block_class.segment_bytes), granularity);
  if (SegmentBlock* block = TakeFromNewSegment(request, usual)) return block;
  // Near a limit, a segment of the usual size may be too much where a small one still fits.
  return usual == least ? nullptr : TakeFromNewSegment(request, least);
}

SegmentBlock* CachingAllocator::TakeFromNewSegment(const Request& request, int64_t segment_bytes) {
  const int64_t granularity = request.pool->block_class.source->commit_granularity();
  const int64_t more = granularity > 0 ? RoundUp(request.bytes, granularity) : segment_bytes;
  if (!MakeRoom(more, request.bytes, nullptr)) return nullptr;
  SegmentBlock* whole = AddSegment(request.pool, segment_bytes);
  if (whole == nullptr) return nullptr;
  SegmentBlock* block = TakeFrom(whole, request);
  // An empty segment would hold nothing but addresses.
  if (block == nullptr) GiveBackBlock(whole);
  return block;
}

// A block's usable bytes count from the alignment of its own class, so leave room for this one's.
SegmentBlock* CachingAllocator::TakeFromOtherClasses(const Request& request) {
  const int64_t bytes = request.bytes + request.pool->block_class.alignment;
  for (size_t i = 0; i < options_.classes.size(); ++i) {
    BlockPool& pool = PoolOf(i, request.pool->stream);
    if (&pool == request.pool) continue;
    for (const BlockPool::FreeBlocks* blocks : {&pool.ready, &pool.partial}) {
      SegmentBlock* fitting = BestFit(*blocks, bytes);
      if (fitting == nullptr) continue;
      if (SegmentBlock* block = TakeFrom(fitting, request)) return block;
    }
  }
  return nullptr;
}

SegmentBlock* CachingAllocator::TakeFrom(SegmentBlock* block, const Request& request) {
  const int64_t begin = block->AlignedOffset(request.pool->block_class.alignment);
  if (block->uncommitted_bytes > 0) {
    MemorySegment* segment = block->segment;
    const int64_t granularity = segment->pool->block_class.source->commit_granularity();
    const ByteRange granules{begin / granularity * granularity,
                             RoundUp(begin + request.bytes, granularity)};
    const int64_t more = segment->uncommitted.CountIn(granules);
    // MakeRoom may give memory back, but not that of this block.
    if (!MakeRoom(more, request.bytes, block)) return nullptr;
    index_.Unlist(block);
    // The block is out of the index now, since committing changes the byte counts that order it.
    const bool is_committed = Commit(segment, granules);
    if (!is_committed) {
      index_.List(block);
      return nullptr;
    }
  } else {
    index_.Unlist(block);
  }
  // A free block may begin anywhere in its segment; the bytes before the first aligned one stay
  // free.
  if (begin > block->offset) {
    SegmentBlock* gap = block;
    block = SplitOff(block, begin - block->offset);
    index_.List(gap);
  }
  if (block->bytes > request.bytes) index_.List(SplitOff(block, request.bytes));
  blocks_.emplace(block->address(), block);
  return block;
}

// ---- segments

SegmentBlock* CachingAllocator::AddSegment(BlockPool* pool, int64_t bytes) {
  SegmentSource& source = *pool->block_class.source;
  void* address = source.Reserve(bytes, pool->block_class.alignment);
  if (address == nullptr) {
    failure_ = source.failure();
    return nullptr;
  }
  auto* segment =
      std::pmr::polymorphic_allocator<>(&memory_).new_object<MemorySegment>(MemorySegment{
          .pool = pool,
          .address = static_cast<char*>(address),
          .bytes = bytes,
          .uncommitted = ByteRangeSet(&memory_),
      });
  ++statistics_.system_allocations;
  if (source.commit_granularity() > 0) {
    segment->uncommitted.Insert({0, bytes});
  } else {
    AddReserved(bytes);
  }
  SetPoison(*pool, address, bytes, true);
  SegmentBlock* whole = NewBlock({.segment = segment, .offset = 0, .bytes = bytes});
  index_.List(whole);
  return whole;
}

bool CachingAllocator::Commit(MemorySegment* segment, ByteRange range) {
  SegmentSource& source = *segment->pool->block_class.source;
  for (const ByteRange& part : segment->uncommitted.Within(range)) {
    // Parts committed before a failure stay: the block is listed again with them.
    if (!source.Commit(segment->address + part.begin, part.end - part.begin)) {
      failure_ = source.failure();
      return false;
    }
    segment->uncommitted.Erase(part);
    ++statistics_.system_allocations;
    AddReserved(part.end - part.begin);
  }
  return true;
}

void CachingAllocator::GiveBackBlock(SegmentBlock* block) {
  MemorySegment* segment = block->segment;
  SegmentSource& source = *segment->pool->block_class.source;
  const bool is_whole = block->is_whole_segment();
  index_.Unlist(block);
  if (source.commit_granularity() > 0) {
    for (const ByteRange& part : segment->uncommitted.MissingWithin(ReleasableRange(*block))) {
      source.Decommit(segment->address + part.begin, part.end - part.begin);
      segment->uncommitted.Insert(part);
      ++statistics_.system_releases;
      AddReserved(part.begin - part.end);
    }
  } else {
    AddReserved(-segment->bytes);
  }
  if (!is_whole) {
    index_.List(block);
    return;
  }
  SetPoison(*segment->pool, segment->address, segment->bytes, false);
  source.Release(segment->address, segment->bytes);
  ++statistics_.system_releases;
  DeleteBlock(block);
  std::pmr::polymorphic_allocator<>(&memory_).delete_object(segment);
}

void CachingAllocator::GiveBack(int64_t bytes, const SegmentBlock* kept) {
  while (bytes > 0) {
    SegmentBlock* block = index_.BestToRelease(bytes, kept);
    if (block == nullptr) return;
    bytes -= block->releasable_bytes;
    GiveBackBlock(block);
  }
}

// Two bounds may call for giving cached memory back first: the limit, which is strict, and the
// slack beyond the peak, which is met as far as there is cached memory. The peak includes the block
// that the memory is for.
bool CachingAllocator::MakeRoom(int64_t more, int64_t block_bytes, const SegmentBlock* kept) {
  const int64_t wanted = statistics_.reserved_bytes + more;
  const int64_t limit = statistics_.limit_bytes;
  int64_t excess = limit > 0 ? wanted - limit : 0;
  if (options_.slack_beyond_peak_bytes < CachingOptions::kUnbounded) {
    const int64_t peak = std::max(peak_block_bytes_, block_bytes_ + block_bytes);
    excess = std::max(excess, wanted - peak - options_.slack_beyond_peak_bytes);
  }
  GiveBack(excess, kept);
  return limit == 0 || statistics_.reserved_bytes + more <= limit;
}

void CachingAllocator::AddReserved(int64_t bytes) {
  statistics_.reserved_bytes += bytes;
  statistics_.peak_reserved_bytes =
      std::max(statistics_.peak_reserved_bytes, statistics_.reserved_bytes);
}

// ---- blocks

SegmentBlock* CachingAllocator::NewBlock(const SegmentBlock& block) {
  return std::pmr::polymorphic_allocator<>(&memory_).new_object<SegmentBlock>(block);
}

void CachingAllocator::DeleteBlock(SegmentBlock* block) {
  std::pmr::polymorphic_allocator<>(&memory_).delete_object(block);
}

SegmentBlock* CachingAllocator::SplitOff(SegmentBlock* block, int64_t bytes) {
  SegmentBlock* rest = NewBlock({.segment = block->segment,
                                 .offset = block->offset + bytes,
                                 .bytes = block->bytes - bytes,
                                 .previous = block,
                                 .next = block->next});
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  return rest;
}

void CachingAllocator::Retire(SegmentBlock* block) {
  block_bytes_ -= block->bytes;
  BlockPool& pool = *block->segment->pool;
  std::vector<SegmentBlock*>* parked = pool.ParkedOf(block->bytes);
  if (parked == nullptr) return MakeFree(block);
  parked->push_back(block);
  pool.parked_bytes += block->bytes;
  if (pool.parked_bytes > pool.block_class.max_parked_bytes) JoinParked(&pool);
}

void CachingAllocator::JoinParked(BlockPool* pool) {
  if (pool->parked_bytes == 0) return;
  for (std::vector<SegmentBlock*>& parked : pool->parked) {
    for (SegmentBlock* block : parked) MakeFree(block);
    parked.clear();
  }
  pool->parked_bytes = 0;
}

void CachingAllocator::JoinAllParked() {
  for (auto& [key, pool] : pools_) JoinParked(&pool);
}

// The boundary-tag method (Knuth, "The Art of Computer Programming", volume 1, section 2.5): since
// neighbours in a segment are linked, merging takes no search. Two free blocks are never adjacent,
// so looking one block ahead and one back suffices.
void CachingAllocator::MakeFree(SegmentBlock* block) {
  blocks_.erase(block->address());
  const auto join_next = [this](SegmentBlock* first) {
    SegmentBlock* second = first->next;
    first->bytes += second->bytes;
    first->next = second->next;
    if (first->next != nullptr) first->next->previous = first;
    DeleteBlock(second);
  };
  if (block->next != nullptr && block->next->is_free) {
    index_.Unlist(block->next);
    join_next(block);
  }
  if (block->previous != nullptr && block->previous->is_free) {
    block = block->previous;
    index_.Unlist(block);
    join_next(block);
  }
  index_.List(block);
  GiveBack(index_.releasable_bytes() - options_.max_cached_bytes);
}

// ---- streams

void CachingAllocator::AwaitStreams(SegmentBlock* block) {
  for (void* stream : block->other_streams) {
    void* event = events_->Record(stream);
    // Without an event, the stream's work is done already.
    if (event == nullptr) continue;
    awaited_[stream].push_back({event, block});
    ++block->awaited_events;
  }
  block->other_streams.clear();
}

void CachingAllocator::Finish(const Awaited& awaited) {
  events_->Recycle(awaited.event);
  if (--awaited.block->awaited_events == 0) Retire(awaited.block);
}

void CachingAllocator::CollectDone() {
  for (auto& [stream, queue] : awaited_) {
    // A stream does its work in order, so after the first event that isn't done no other one is.
    while (!queue.empty() && events_->IsDone(queue.front().event)) {
      Finish(queue.front());
      queue.pop_front();
    }
  }
}

void CachingAllocator::WaitForStreams() {
  for (auto& [stream, queue] : awaited_) {
    for (const Awaited& awaited : queue) {
      events_->Wait(awaited.event);
      Finish(awaited);
    }
    queue.clear();
  }
}

}  // namespace skiff
