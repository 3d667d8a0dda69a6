// Selected rows of all kinds, for cases of ops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns pairs {name of the case, X}: with repeated and unused rows, only unused rows, no rows, a
// single row, rows of one number, enough rows for several threads, and rows wider than a tile.
std::vector<std::pair<std::string, Array>> SelectedRowsOfAllKinds();

// Returns another one, with more rows than a block of CUDA's sort takes. A third of them are the
// same row. On the CPU, CUDA's kernels take seconds for it. So only the different ways to treat
// repeated rows run it: merging in place (clip) or not, making a dense tensor, adding to sums
// (gradient_merge_rows), updating only these rows (sgd) or all rows (lamb).
std::pair<std::string, Array> CrowdedSelectedRows();

}  // namespace skiff::harness
