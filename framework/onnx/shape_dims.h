// Dims and indices, of which some are known only in a run.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/builder/variable.h"

namespace skiff {

inline int64_t RankOf(const Variable& x) { return static_cast<int64_t>(x.dims().size()); }

// Returns x in a shape that is composed of `parts`: vectors of whole numbers.
Variable ReshapedToParts(const Variable& x, const std::vector<Variable>& parts);

// Returns the dims [begin, end) of x as int64, computed in a run.
Variable DimsOf(const Variable& x, int64_t begin, int64_t end);

// Returns whether a single reshape can make these dims: at most one dim is -1, which the reshape
// computes, and no dim is 0.
bool CanReshape(const std::vector<int64_t>& dims);

// Returns the part [begin, end) of `count` elements that a slice from `start` to `end` takes:
// bounds below 0 count from the end, and bounds outside are moved to the first or the last element.
std::pair<int64_t, int64_t> SlicedPart(int64_t start, int64_t end, int64_t count);

// Returns the nearest number that an int32 attribute holds, except the least number of int32, which
// has no negative.
int64_t Within32(int64_t number);

// Returns the indices with those below 0 counted from the end of axis `axis` of x, as int64.
Variable IndicesFromFront(const Variable& indices, const Variable& x, int64_t axis);

}  // namespace skiff
