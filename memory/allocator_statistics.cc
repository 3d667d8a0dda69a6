#include "memory/allocator_statistics.h"

#include <ostream>

namespace skiff {
namespace {

constexpr std::array<std::string_view, kMemoryTagCount> kNames = {
    "other", "parameter", "optimizer_state", "gradient",
    "arena", "workspace", "derived_form",    "feed_or_fetch"};

thread_local MemoryTag current_tag = MemoryTag::kOther;

}  // namespace

std::string_view MemoryTagName(MemoryTag tag) { return kNames[static_cast<size_t>(tag)]; }

MemoryTag CurrentMemoryTag() { return current_tag; }

MemoryTagScope::MemoryTagScope(MemoryTag tag) : outer_(current_tag) { current_tag = tag; }

MemoryTagScope::~MemoryTagScope() { current_tag = outer_; }

std::ostream& operator<<(std::ostream& stream, const AllocatorStatistics& statistics) {
  stream << "live " << statistics.live_bytes << " bytes in " << statistics.live_blocks
         << " blocks (peak " << statistics.peak_bytes << "), reserved " << statistics.reserved_bytes
         << " (peak " << statistics.peak_reserved_bytes;
  if (statistics.limit_bytes > 0) stream << ", limit " << statistics.limit_bytes;
  stream << "), " << statistics.allocations << " allocations, " << statistics.system_allocations
         << " from the system, " << statistics.system_releases << " given back\n";
  for (size_t i = 0; i < kMemoryTagCount; ++i) {
    const TagStatistics& tag = statistics.by_tag[i];
    if (tag.allocations == 0) continue;
    stream << "  " << kNames[i] << ": live " << tag.live_bytes << " (peak " << tag.peak_bytes
           << "), " << tag.allocations << " allocations\n";
  }
  return stream;
}

}  // namespace skiff
