// What a caching allocator stands on: a kind of memory, and the events that order its use.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

// A kind of memory, taken and given back in segments. Called by one thread at a time.
//
// Where commit_granularity() is positive, Reserve gives addresses alone, and memory lies behind
// them from Commit to Decommit, range by range. What was decommitted holds nothing of use.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // A segment of `bytes` bytes at a multiple of `alignment` (a power of two). nullptr if there is
  // none: failure() says why.
  virtual void* Reserve(int64_t bytes, int64_t alignment) = 0;
  // A whole segment, of which nothing is committed any more, and which nothing uses.
  virtual void Release(void* segment, int64_t bytes) noexcept = 0;

  // 0: a segment has its memory from Reserve to Release. Otherwise ranges begin and end at
  // multiples of this, counted from the beginning of the segment, and so does the segment itself.
  virtual int64_t commit_granularity() const { return 0; }
  // False if there is no memory: failure() says why.
  virtual bool Commit(void* /*begin*/, int64_t /*bytes*/) { return true; }
  // Any range of what is committed, also of several calls of Commit.
  virtual void Decommit(void* /*begin*/, int64_t /*bytes*/) noexcept {}

  // Whether the CPU reads and writes it.
  virtual bool is_host_memory() const = 0;
  // The system's reason for the last failure.
  virtual std::string failure() const = 0;
};

// The events of a device's streams. An event is done when the work is that its stream had been
// given when it was recorded. Called by one thread at a time.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // nullptr if no event can be had: the stream's work is done then.
  virtual void* Record(void* stream) noexcept = 0;
  virtual bool IsDone(void* event) noexcept = 0;
  virtual void Wait(void* event) noexcept = 0;
  // The event isn't asked about any more.
  virtual void Recycle(void* event) noexcept = 0;
};

}  // namespace skiff
