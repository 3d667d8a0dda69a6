// A set of byte offsets in a segment, stored as disjoint ranges. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

namespace skiff {

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;  // one past the last byte
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Calls take O(log n + k) for n ranges in the set and k ranges touched.
class ByteRangeSet {
 public:
  ByteRangeSet() = default;
  explicit ByteRangeSet(std::pmr::memory_resource* memory) : ends_(memory) {}

  void Insert(ByteRange range);
  void Erase(ByteRange range);
  // Returns how many bytes of the range are in the set.
  int64_t CountIn(ByteRange range) const;
  // Return the parts of the range inside and outside the set, in ascending order.
  std::vector<ByteRange> Within(ByteRange range) const;
  std::vector<ByteRange> MissingWithin(ByteRange range) const;

 private:
  using Ends = std::pmr::map<int64_t, int64_t>;  // begin -> end; neighbours don't touch
  // Returns the first range that ends after `offset`.
  Ends::const_iterator EndingAfter(int64_t offset) const;

  Ends ends_;
};

}  // namespace skiff
