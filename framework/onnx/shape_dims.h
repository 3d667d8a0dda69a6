// Reshaping where some extents are known only in a run.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/builder/variable.h"

namespace skiff {

// Returns x in a shape that is composed of `parts`: vectors of whole numbers.
Variable ReshapedToParts(const Variable& x, const std::vector<Variable>& parts);

// Returns the dims [begin, end) of x as int64, computed in a run.
Variable DimsOf(const Variable& x, int64_t begin, int64_t end);

// Returns x in these dims. -1 stands for an unknown extent, of which there may be one at most.
bool CanReshape(const std::vector<int64_t>& dims);

// Returns the indices with those below 0 counted from the end of axis `axis` of x, as int64.
Variable IndicesFromFront(const Variable& indices, const Variable& x, int64_t axis);

}  // namespace skiff
