// Lists of names in the report of a pass.
#pragma once

#include <string>
#include <vector>

namespace skiff {

// Returns "a, b, c and 4 more": the first few names in ascending order.
std::string FewNames(std::vector<std::string> names);

}  // namespace skiff
