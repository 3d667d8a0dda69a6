// The basis of a caching allocator: a kind of memory, and events that order its use.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

// A kind of memory, taken and returned in segments. One thread at a time may call it.
//
// If commit_granularity() is positive, Reserve provides addresses only; Commit and Decommit map
// memory to ranges of the addresses and take the memory away. Decommitted memory loses its
// contents.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // Returns a segment of `bytes` bytes whose address is a multiple of `alignment` (a power of two),
  // or nullptr; failure() then says why.
  virtual void* Reserve(int64_t bytes, int64_t alignment) = 0;
  // Takes back a whole segment. Nothing may use the segment, and no part may be committed.
  virtual void Release(void* segment, int64_t bytes) noexcept = 0;

  // Returns 0 if a segment has memory from Reserve to Release. Otherwise segment sizes, and the
  // ends of committed ranges as offsets in the segment, are multiples of this.
  virtual int64_t commit_granularity() const { return 0; }
  // Returns false if there is no memory; failure() then says why.
  virtual bool Commit(void* /*begin*/, int64_t /*bytes*/) { return true; }
  // Takes any committed range, also one that several calls of Commit made.
  virtual void Decommit(void* /*begin*/, int64_t /*bytes*/) noexcept {}

  // Returns whether the CPU can read and write the memory.
  virtual bool is_host_memory() const = 0;
  // Returns the system's reason for the last failure.
  virtual std::string failure() const = 0;
};

// Events of a device's streams. An event is done when all work that its stream had received before
// Record is done. One thread at a time may call it.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // Returns an event, or nullptr after waiting for the stream if none is available.
  virtual void* Record(void* stream) noexcept = 0;
  virtual bool IsDone(void* event) noexcept = 0;
  virtual void Wait(void* event) noexcept = 0;
  // Takes back an event that isn't needed any more.
  virtual void Recycle(void* event) noexcept = 0;
};

}  // namespace skiff
