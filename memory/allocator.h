// Where buffers come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/place.h"

namespace skiff {

// Every block that an allocator hands out begins at a multiple of this.
inline constexpr int64_t kBufferAlignment = 64;

struct AllocatorStatistics {
  int64_t live_bytes = 0;   // handed out and not yet returned
  int64_t peak_bytes = 0;   // the highest live_bytes so far
  int64_t allocations = 0;  // calls of Allocate so far
};

// Thread-safe. Outlives every block that it handed out.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual Place place() const = 0;
  // At least `bytes` bytes, uninitialised. 0 bytes are legal and give nullptr. Error
  // (kResourceExhausted) when there is no more memory, kInvalidArgument for a negative count.
  virtual void* Allocate(int64_t bytes) = 0;
  virtual void Free(void* block, int64_t bytes) noexcept = 0;
  virtual AllocatorStatistics statistics() const = 0;
};

// The process-wide allocator of a place. Error for a place that this build or machine lacks.
Allocator& AllocatorOf(Place place);

// A block with an owner, neither copied nor moved: tensors share it through shared_ptr.
class Buffer {
 public:
  // Error as Allocator::Allocate.
  Buffer(Allocator& allocator, int64_t bytes);
  // Memory of somebody else's, who outlives the Buffer.
  Buffer(void* borrowed, int64_t bytes, Place place);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Place place() const { return place_; }

 private:
  Allocator* allocator_;  // nullptr: borrowed
  void* data_;
  int64_t bytes_;
  Place place_;
};

}  // namespace skiff
