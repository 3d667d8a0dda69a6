// Selected rows of all kinds, for cases of ops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns pairs {name of the case, X}: with repeated and unused rows, only unused rows, no rows,
// one row, rows of one number, enough rows for several threads, and rows wider than a tile.
std::vector<std::pair<std::string, Array>> SelectedRowsOfAllKinds();

// Returns another one, with too many rows for one block of CUDA's sort. A third of them are the
// same row. On the CPU, CUDA's kernels take long for it, so only ops with kernels of their own for
// repeated rows have such a case.
std::pair<std::string, Array> CrowdedSelectedRows();

}  // namespace skiff::harness
