// Allocators, and the buffers that own their blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/place.h"
#include "memory/allocator_statistics.h"

namespace skiff {

// Every block that an allocator returns begins at a multiple of this.
inline constexpr int64_t kBufferAlignment = 64;

struct AllocationOptions {
  MemoryTag tag = CurrentMemoryTag();
  // A cudaStream_t. Only its work uses the block, unless RecordUse names other streams. Ignored for
  // CPU and pinned memory, which no stream orders.
  void* stream = nullptr;
};

// Thread-safe. Must outlive every block that it returns.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual Place place() const = 0;

  // Returns an uninitialised block of at least `bytes` bytes; nullptr for 0 bytes. If memory runs
  // out or the limit is reached, first gives back everything cached; throws OutOfMemoryError
  // (kResourceExhausted) if that isn't enough. Throws Error (kInvalidArgument) for a negative
  // count.
  virtual void* Allocate(int64_t bytes, const AllocationOptions& options = {}) = 0;
  // Frees a block; `bytes` is the size passed to Allocate. On a device, all work that uses the
  // block must have been issued before: work that its stream receives later may reuse the block at
  // once.
  virtual void Free(void* block, int64_t bytes) noexcept = 0;
  // Declares that work issued to `stream` (a cudaStream_t), which is not the block's own, uses the
  // block. After Free, the block isn't reused until that work is done. Call it after issuing the
  // work and before Free; once per stream suffices. Ignored for memory without streams.
  virtual void RecordUse(void* /*block*/, void* /*stream*/) {}

  // Returns all cached, unused memory to the system. On a device, waits for its work.
  virtual void ReleaseCached() = 0;
  // Limits reserved bytes to `bytes`; 0 removes the limit. Returns cached memory beyond the limit
  // to the system. Live blocks stay; if they exceed the limit, nothing is reserved until enough of
  // them are freed. Throws Error (kInvalidArgument) for a negative limit.
  virtual void SetLimit(int64_t bytes) = 0;

  virtual AllocatorStatistics statistics() const = 0;
  // Sets every peak to the current value.
  virtual void ResetPeaks() = 0;
};

// While a BufferLimit exists, its thread gets no Buffer with more bytes: an Error (kUnimplemented).
// For work that must stay small whatever its input.
class BufferLimit {
 public:
  explicit BufferLimit(int64_t bytes);
  ~BufferLimit();
  BufferLimit(const BufferLimit&) = delete;
  BufferLimit& operator=(const BufferLimit&) = delete;

 private:
  int64_t outer_;
};

namespace internal {

// Owns a block and frees it. Not copyable; tensors share a Buffer through shared_ptr.
class Buffer {
 public:
  // Allocates a block. Throws what Allocator::Allocate throws, and an Error beyond a BufferLimit.
  Buffer(Allocator& allocator, int64_t bytes, const AllocationOptions& options = {});
  // Refers to borrowed memory. The owner must keep the memory alive. The destructor doesn't free
  // it.
  Buffer(void* borrowed, int64_t bytes, Place place);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Place place() const { return place_; }
  MemoryTag tag() const { return tag_; }
  // Like Allocator::RecordUse; does nothing for borrowed memory.
  void RecordUse(void* stream);

 private:
  Allocator* allocator_;  // nullptr: borrowed
  void* data_;
  int64_t bytes_;
  Place place_;
  MemoryTag tag_;
};

}  // namespace internal
using internal::Buffer;

}  // namespace skiff
