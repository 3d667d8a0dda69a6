// Fake memory and streams for tests: they count calls, fail on demand, and check how they are
// called.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "memory/byte_range_set.h"
#include "memory/caching_allocator.h"
#include "memory/segment_source.h"

namespace skiff {

// A source of `capacity_bytes` of the C library's memory.
class FakeSource final : public SegmentSource {
 public:
  struct Options {
    int64_t capacity_bytes = int64_t{1} << 40;
    int64_t commit_granularity = 0;
  };

  FakeSource() : FakeSource(Options()) {}
  explicit FakeSource(Options options) : options_(options) {}
  ~FakeSource() override { EXPECT_TRUE(segments_.empty()) << segments_.size() << " leaked"; }

  void* Reserve(int64_t bytes, int64_t alignment) override {
    EXPECT_GT(bytes, 0);
    if (options_.commit_granularity > 0) {
      EXPECT_EQ(bytes % options_.commit_granularity, 0);
    } else if (!Take(bytes)) {
      return nullptr;
    }
    void* segment = nullptr;
    EXPECT_EQ(posix_memalign(&segment, static_cast<size_t>(std::max<int64_t>(alignment, 64)),
                             static_cast<size_t>(bytes)),
              0);
    segments_[Address(segment)] = {.bytes = bytes, .serial = ++reservations};
    return segment;
  }

  void Release(void* address, int64_t bytes) noexcept override {
    const auto found = segments_.find(Address(address));
    ASSERT_TRUE(found != segments_.end());
    EXPECT_EQ(found->second.bytes, bytes);
    EXPECT_EQ(found->second.committed.CountIn({0, bytes}), 0);
    segments_.erase(found);
    ++releases;
    if (options_.commit_granularity == 0) in_use_bytes -= bytes;
    std::free(address);
  }

  int64_t commit_granularity() const override { return options_.commit_granularity; }

  bool Commit(void* begin, int64_t bytes) override {
    const auto [segment, range] = Find(begin, bytes);
    EXPECT_EQ(segment->committed.CountIn(range), 0) << "committed twice";
    if (!Take(bytes)) return false;
    segment->committed.Insert(range);
    ++commits;
    return true;
  }

  void Decommit(void* begin, int64_t bytes) noexcept override {
    const auto [segment, range] = Find(begin, bytes);
    EXPECT_EQ(segment->committed.CountIn(range), bytes) << "not committed";
    segment->committed.Erase(range);
    in_use_bytes -= bytes;
    ++decommits;
  }

  bool is_host_memory() const override { return is_host; }
  std::string failure() const override { return "the fake has no more"; }

  // Returns whether all of a block is committed.
  bool Backs(const void* begin, int64_t bytes) {
    const auto [segment, range] = Find(begin, bytes);
    return options_.commit_granularity == 0 || segment->committed.CountIn(range) == bytes;
  }
  // A different one for every segment ever reserved.
  int64_t SerialOf(const void* begin) { return Find(begin, 1).first->serial; }

  int64_t in_use_bytes = 0;  // of the capacity
  int64_t reservations = 0;
  int64_t releases = 0;
  int64_t commits = 0;
  int64_t decommits = 0;
  bool is_host = true;

 private:
  struct Segment {
    int64_t bytes = 0;
    int64_t serial = 0;
    ByteRangeSet committed;
  };

  static int64_t Address(const void* address) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(address));
  }

  bool Take(int64_t bytes) {
    if (in_use_bytes + bytes > options_.capacity_bytes) return false;
    in_use_bytes += bytes;
    return true;
  }

  std::pair<Segment*, ByteRange> Find(const void* begin, int64_t bytes) {
    const auto found = std::prev(segments_.upper_bound(Address(begin)));
    const int64_t offset = Address(begin) - found->first;
    EXPECT_LE(offset + bytes, found->second.bytes);
    return {&found->second, {offset, offset + bytes}};
  }

  const Options options_;
  std::map<int64_t, Segment> segments_;
};

// A stream that does its work when the test tells it to.
struct FakeStream {
  int64_t issued = 0;
  int64_t done = 0;
  void Issue() { ++issued; }
  void Finish() { done = issued; }
};

class FakeEvents final : public StreamEvents {
 public:
  ~FakeEvents() override { EXPECT_EQ(recorded, recycled); }

  void* Record(void* stream) noexcept override {
    if (fails) return nullptr;
    ++recorded;
    auto* of = static_cast<FakeStream*>(stream);
    return new Event{of, of->issued};
  }
  bool IsDone(void* event) noexcept override {
    const auto* e = static_cast<Event*>(event);
    return e->stream->done >= e->position;
  }
  void Wait(void* event) noexcept override {
    const auto* e = static_cast<Event*>(event);
    if (!IsDone(event)) ++waits;
    e->stream->done = std::max(e->stream->done, e->position);
  }
  void Recycle(void* event) noexcept override {
    ++recycled;
    delete static_cast<Event*>(event);
  }

  bool fails = false;
  int64_t recorded = 0;
  int64_t recycled = 0;
  int64_t waits = 0;

 private:
  struct Event {
    FakeStream* stream;
    int64_t position;
  };
};

}  // namespace skiff
