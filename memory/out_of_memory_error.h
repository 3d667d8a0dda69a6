// The Error that an allocator throws when it can't provide a block.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/base/place.h"
#include "memory/allocator_statistics.h"

namespace skiff {

// The state at the moment of the failure, after the allocator has returned everything cached.
struct MemoryShortage {
  Place place;
  std::string memory;  // "cpu", "cuda:0", "pinned"
  MemoryTag tag = MemoryTag::kOther;
  int64_t requested_bytes = 0;
  int64_t live_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t limit_bytes = 0;  // 0: none
  std::string reason;       // the system's; empty if the limit caused the failure
};

// An Error with code kResourceExhausted. Code that knows what the memory holds catches it and
// throws an Error with more detail. (WithContext keeps code and message, but loses the figures.)
class OutOfMemoryError final : public Error {
 public:
  explicit OutOfMemoryError(MemoryShortage shortage);

  const MemoryShortage& shortage() const { return shortage_; }

 private:
  MemoryShortage shortage_;
};

}  // namespace skiff
