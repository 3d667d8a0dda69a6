// Where buffers come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/place.h"
#include "memory/allocator_statistics.h"

namespace skiff {

// Every block that an allocator hands out begins at a multiple of this.
inline constexpr int64_t kBufferAlignment = 64;

struct AllocationOptions {
  MemoryTag tag = CurrentMemoryTag();
  // A cudaStream_t, whose work alone uses the block unless RecordUse says otherwise. Of no meaning
  // for memory that no stream orders (the CPU's and pinned memory).
  void* stream = nullptr;
};

// Thread-safe. Outlives every block that it handed out.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual Place place() const = 0;

  // At least `bytes` bytes, uninitialised. 0 bytes are legal and give nullptr. OutOfMemoryError
  // (kResourceExhausted) when there is no more memory or the limit forbids it, and whatever was
  // cached has been given back; kInvalidArgument for a negative count.
  virtual void* Allocate(int64_t bytes, const AllocationOptions& options = {}) = 0;
  // `bytes`: as it was allocated. On a device the block is reused at once by work that its stream
  // is given later, so what uses it must have been issued before.
  virtual void Free(void* block, int64_t bytes) noexcept = 0;
  // Work that was issued to another stream (a cudaStream_t) than the block's own uses the block:
  // once freed, it is reused only after that work is done. To be called behind the work and before
  // Free; each stream once is enough. Ignored where no streams are.
  virtual void RecordUse(void* /*block*/, void* /*stream*/) {}

  // Gives everything cached and unused back to the system; on a device, waits for its work.
  virtual void ReleaseCached() = 0;
  // From now on, reserved bytes stay within `bytes`; 0: no limit. What is cached beyond is given
  // back; what is live stays, though it be more, and nothing new is reserved until it is less.
  // kInvalidArgument for a negative limit.
  virtual void SetLimit(int64_t bytes) = 0;

  virtual AllocatorStatistics statistics() const = 0;
  // Every peak becomes what is live or reserved now.
  virtual void ResetPeaks() = 0;
};

// The process-wide allocator of a place. Error for a place that this build or machine lacks.
Allocator& AllocatorOf(Place place);
// That of page-locked CPU memory, which devices copy from and to while the CPU goes on. A block
// that copies on a stream use needs RecordUse. kFailedPrecondition in a build without CUDA, Error
// on a machine without a device.
Allocator& PinnedAllocator();

// A block with an owner, neither copied nor moved: tensors share it through shared_ptr.
class Buffer {
 public:
  // Error as Allocator::Allocate.
  Buffer(Allocator& allocator, int64_t bytes, const AllocationOptions& options = {});
  // Memory of somebody else's, who outlives the Buffer.
  Buffer(void* borrowed, int64_t bytes, Place place);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Place place() const { return place_; }
  MemoryTag tag() const { return tag_; }
  // As Allocator::RecordUse; nothing for borrowed memory.
  void RecordUse(void* stream);

 private:
  Allocator* allocator_;  // nullptr: borrowed
  void* data_;
  int64_t bytes_;
  Place place_;
  MemoryTag tag_;
};

}  // namespace skiff
