// Statistics of an allocator, and tags for the purposes of its blocks.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace skiff {

// The purpose of a block. Tags affect statistics only.
enum class MemoryTag : uint8_t {
  kOther,
  kParameter,       // what is trained
  kOptimizerState,  // moments, velocities
  kGradient,        // gradients outside an arena
  kArena,           // activations and all other temporaries of a plan
  kWorkspace,       // scratch memory of a kernel outside an arena
  kDerivedForm,     // prepacked and transformed weights
  kFeedOrFetch,
};
inline constexpr size_t kMemoryTagCount = 8;

// Returns "other", "parameter", "optimizer_state", ….
std::string_view MemoryTagName(MemoryTag tag);

// Returns the tag for allocations on this thread that specify none: that of the innermost
// MemoryTagScope, else kOther.
MemoryTag CurrentMemoryTag();

class MemoryTagScope {
 public:
  explicit MemoryTagScope(MemoryTag tag);
  ~MemoryTagScope();
  MemoryTagScope(const MemoryTagScope&) = delete;
  MemoryTagScope& operator=(const MemoryTagScope&) = delete;

 private:
  MemoryTag outer_;
};

struct TagStatistics {
  int64_t live_bytes = 0;   // handed out and not yet returned
  int64_t peak_bytes = 0;   // the highest live_bytes so far
  int64_t allocations = 0;  // blocks handed out so far
};

// Live bytes are those requested. Reserved bytes are the system's memory that the allocator holds:
// live blocks, rounded up, and cached ones.
struct AllocatorStatistics {
  int64_t live_bytes = 0;   // handed out and not yet returned
  int64_t peak_bytes = 0;   // the highest live_bytes so far
  int64_t allocations = 0;  // blocks handed out so far
  int64_t reserved_bytes = 0;
  int64_t peak_reserved_bytes = 0;
  int64_t live_blocks = 0;
  int64_t system_allocations = 0;  // segments and ranges taken from the system so far
  int64_t system_releases = 0;     // segments and ranges given back so far
  int64_t limit_bytes = 0;         // the most reserved bytes allowed; 0: any number
  std::array<TagStatistics, kMemoryTagCount> by_tag;

  const TagStatistics& of(MemoryTag tag) const { return by_tag[static_cast<size_t>(tag)]; }
};

// Prints one line of totals, and one line per tag in use.
std::ostream& operator<<(std::ostream& stream, const AllocatorStatistics& statistics);

}  // namespace skiff
