#include "memory/byte_range_set.h"

#include <algorithm>
#include <iterator>

namespace skiff {

ByteRangeSet::Ends::const_iterator ByteRangeSet::EndingAfter(int64_t offset) const {
  const auto next = ends_.upper_bound(offset);
  if (next == ends_.begin()) return next;
  const auto before = std::prev(next);
  return before->second > offset ? before : next;
}

void ByteRangeSet::Insert(ByteRange range) {
  if (range.begin >= range.end) return;
  // Ranges that overlap or touch the new one merge with it, so that neighbours in the map never
  // touch.
  auto next = EndingAfter(range.begin - 1);
  while (next != ends_.end() && next->first <= range.end) {
    range.begin = std::min(range.begin, next->first);
    range.end = std::max(range.end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace_hint(next, range.begin, range.end);
}

void ByteRangeSet::Erase(ByteRange range) {
  if (range.begin >= range.end) return;
  auto next = EndingAfter(range.begin);
  while (next != ends_.end() && next->first < range.end) {
    const ByteRange found{next->first, next->second};
    next = ends_.erase(next);
    if (found.begin < range.begin) ends_.emplace_hint(next, found.begin, range.begin);
    if (found.end > range.end) next = ends_.emplace_hint(next, range.end, found.end);
  }
}

int64_t ByteRangeSet::CountIn(ByteRange range) const {
  int64_t bytes = 0;
  if (range.begin >= range.end) return bytes;
  for (auto held = EndingAfter(range.begin); held != ends_.end() && held->first < range.end;
       ++held) {
    bytes += std::min(held->second, range.end) - std::max(held->first, range.begin);
  }
  return bytes;
}

std::vector<ByteRange> ByteRangeSet::Within(ByteRange range) const {
  std::vector<ByteRange> parts;
  if (range.begin >= range.end) return parts;
  for (auto held = EndingAfter(range.begin); held != ends_.end() && held->first < range.end;
       ++held) {
    parts.push_back({std::max(held->first, range.begin), std::min(held->second, range.end)});
  }
  return parts;
}

std::vector<ByteRange> ByteRangeSet::MissingWithin(ByteRange range) const {
  std::vector<ByteRange> parts;
  int64_t begin = range.begin;
  for (const ByteRange& held : Within(range)) {
    if (begin < held.begin) parts.push_back({begin, held.begin});
    begin = held.end;
  }
  if (begin < range.end) parts.push_back({begin, range.end});
  return parts;
}

}  // namespace skiff
