// A set of bytes of a segment, as the ranges of offsets that make it up.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

namespace skiff {

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;  // behind the last byte
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Calls take O(log n + k) for n ranges in the set, k of them touched.
class ByteRangeSet {
 public:
  ByteRangeSet() = default;
  explicit ByteRangeSet(std::pmr::memory_resource* memory) : ends_(memory) {}

  void Insert(ByteRange range);
  void Erase(ByteRange range);
  // How many bytes of the range are in the set.
  int64_t CountIn(ByteRange range) const;
  // The parts of the range that are in the set, ascending, and those that aren't.
  std::vector<ByteRange> Within(ByteRange range) const;
  std::vector<ByteRange> MissingWithin(ByteRange range) const;

 private:
  using Ends = std::pmr::map<int64_t, int64_t>;  // begin -> end; neighbours don't touch
  // The first range that ends behind `offset`.
  Ends::const_iterator EndingBehind(int64_t offset) const;

  Ends ends_;
};

}  // namespace skiff
