#include "framework/op/update_part.h"

#include <algorithm>
#include <numeric>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/str_cat.h"

namespace skiff {
namespace {

// Returns the attribute if it is a range within [0, limit], or none if it is empty.
std::vector<int64_t> RangeOf(const Op& op, const char* name, int64_t limit) {
  const auto range = op.Attr<std::vector<int64_t>>(name, {});
  if (range.empty()) return range;
  SKIFF_ENFORCE(range.size() == 2 && 0 <= range[0] && range[0] <= range[1] && range[1] <= limit,
                kInvalidArgument, op.type, ": ", name, " = [", Join(range, ", "),
                "], expected a begin and an end within [0, ", limit, "]");
  return range;
}

int64_t Sum(const std::vector<int64_t>& counts, int64_t first) {
  return std::accumulate(counts.begin(), counts.begin() + first, int64_t{0});
}

}  // namespace

std::vector<PartPiece> PiecesOf(const std::vector<int64_t>& counts, int64_t begin, int64_t end) {
  std::vector<PartPiece> pieces;
  int64_t before = 0;  // the elements before the parameter
  int64_t place = 0;
  for (const int64_t count : counts) {
    const int64_t first = std::clamp(begin - before, int64_t{0}, count);
    const int64_t last = std::clamp(end - before, first, count);
    pieces.push_back({.begin = first, .count = last - first, .place = place});
    before += count;
    place += RoundUp(last - first, kPieceAlignment);
  }
  return pieces;
}

std::array<int64_t, 2> PartOf(const Op& op, const std::vector<int64_t>& counts) {
  const int64_t all = Sum(counts, std::ssize(counts));
  const std::vector<int64_t> part = RangeOf(op, kPartAttr, all);
  if (!part.empty()) return {part[0], part[1]};
  const std::vector<int64_t> parameters = RangeOf(op, kParameterPartAttr, std::ssize(counts));
  if (parameters.empty()) return {0, all};
  return {Sum(counts, parameters[0]), Sum(counts, parameters[1])};
}

std::vector<PartPiece> PiecesOf(const Op& op, const std::vector<int64_t>& counts) {
  const auto [begin, end] = PartOf(op, counts);
  return PiecesOf(counts, begin, end);
}

bool HasPart(const Op& op) {
  return !op.Attr<std::vector<int64_t>>(kPartAttr, {}).empty() ||
         !op.Attr<std::vector<int64_t>>(kParameterPartAttr, {}).empty();
}

int64_t ShardElements(const std::vector<PartPiece>& pieces) {
  int64_t elements = 1;
  for (const PartPiece& piece : pieces) {
    elements = std::max(elements, piece.place + RoundUp(piece.count, kPieceAlignment));
  }
  return elements;
}

}  // namespace skiff
