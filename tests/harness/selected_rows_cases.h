// Selected rows of all kinds for cases of ops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// {name of the case, X}: repeated and unused slots, all of them unused, none, one row, rows of one
// number, enough for several threads, rows wider than a tile.
std::vector<std::pair<std::string, Array>> SelectedRowsOfAllKinds();

}  // namespace skiff::harness
