#include "memory/free_block_index.h"

#include <algorithm>
#include <iterator>

#include "framework/base/element_count.h"

namespace skiff {
namespace {

BlockPool::FreeBlocks& ListOf(const SegmentBlock& block) {
  BlockPool& pool = *block.segment->pool;
  return block.uncommitted_bytes > 0 ? pool.partial : pool.ready;
}

}  // namespace

bool ByUsableBytes::operator()(const SegmentBlock* a, const SegmentBlock* b) const {
  if (a->usable_bytes != b->usable_bytes) return a->usable_bytes < b->usable_bytes;
  return a->address() < b->address();
}

bool ByReleasableBytes::operator()(const SegmentBlock* a, const SegmentBlock* b) const {
  if (a->releasable_bytes != b->releasable_bytes) return a->releasable_bytes < b->releasable_bytes;
  return a->address() < b->address();
}

BlockPool::BlockPool(const BlockClass& block_class, void* stream, std::pmr::memory_resource* memory)
    : block_class(block_class), stream(stream), ready(memory), partial(memory) {
  if (block_class.max_parked_bytes == 0) return;
  parked.resize(static_cast<size_t>(block_class.max_block_bytes / block_class.rounding) + 2);
}

std::vector<SegmentBlock*>* BlockPool::ParkedOf(int64_t block_bytes) {
  // A block of another class that was cut from this class's segment may have a size that no request
  // of this class has.
  if (parked.empty() || block_bytes % block_class.rounding != 0) return nullptr;
  const auto index = static_cast<size_t>(block_bytes / block_class.rounding);
  return index < parked.size() ? &parked[index] : nullptr;
}

int64_t SegmentBlock::AlignedOffset(int64_t alignment) const {
  const auto begin = static_cast<int64_t>(reinterpret_cast<intptr_t>(address()));
  return offset + RoundUp(begin, alignment) - begin;
}

SegmentBlock* BestFit(const BlockPool::FreeBlocks& blocks, int64_t bytes) {
  const auto found = blocks.lower_bound(bytes);
  return found == blocks.end() ? nullptr : *found;
}

ByteRange ReleasableRange(const SegmentBlock& block) {
  if (block.is_whole_segment()) return block.range();
  const int64_t granularity = block.segment->pool->block_class.source->commit_granularity();
  if (granularity == 0) return {};
  const int64_t begin = RoundUp(block.offset, granularity);
  const int64_t end = block.end() / granularity * granularity;
  return begin < end ? ByteRange{begin, end} : ByteRange{};
}

void FreeBlockIndex::List(SegmentBlock* block) {
  const int64_t alignment = block->segment->pool->block_class.alignment;
  const ByteRangeSet& uncommitted = block->segment->uncommitted;
  const ByteRange releasable = ReleasableRange(*block);
  block->is_free = true;
  block->usable_bytes = std::max<int64_t>(block->end() - block->AlignedOffset(alignment), 0);
  block->uncommitted_bytes = uncommitted.CountIn(block->range());
  block->releasable_bytes = releasable.end - releasable.begin - uncommitted.CountIn(releasable);
  ListOf(*block).insert(block);
  if (block->releasable_bytes == 0) return;
  releasable_.insert(block);
  releasable_bytes_ += block->releasable_bytes;
}

void FreeBlockIndex::Unlist(SegmentBlock* block) {
  ListOf(*block).erase(block);
  if (block->releasable_bytes > 0) {
    releasable_.erase(block);
    releasable_bytes_ -= block->releasable_bytes;
  }
  block->is_free = false;
}

// The smallest sufficient block loses the least cached memory. Failing that, the largest one means
// the fewest calls to the system.
SegmentBlock* FreeBlockIndex::BestToRelease(int64_t bytes, const SegmentBlock* kept) const {
  auto best = releasable_.lower_bound(bytes);
  if (best != releasable_.end() && *best == kept) ++best;
  if (best != releasable_.end()) return *best;
  while (best != releasable_.begin()) {
    --best;
    if (*best != kept) return *best;
  }
  return nullptr;
}

}  // namespace skiff
