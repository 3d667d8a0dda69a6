// The Error of an allocator that can't give what it is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/base/place.h"
#include "memory/allocator_statistics.h"

namespace skiff {

// All in bytes, at the moment of the failure, after whatever was cached had been given back.
struct MemoryShortage {
  Place place;
  std::string memory;  // "cpu", "cuda:0", "pinned"
  MemoryTag tag = MemoryTag::kOther;
  int64_t requested_bytes = 0;
  int64_t live_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t limit_bytes = 0;  // 0: none
  std::string reason;       // the system's; empty if the limit is what forbids it
};

// Of code kResourceExhausted. Who knows what the memory holds catches it, and throws an Error that
// says more: WithContext keeps the code and the message, but not the figures.
class OutOfMemoryError final : public Error {
 public:
  explicit OutOfMemoryError(MemoryShortage shortage);

  const MemoryShortage& shortage() const { return shortage_; }

 private:
  MemoryShortage shortage_;
};

}  // namespace skiff
