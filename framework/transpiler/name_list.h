// Names in the report of a pass.
#pragma once

#include <string>
#include <vector>

namespace skiff {

// "a, b, c and 4 more": a few in ascending order, which tell as much as all.
std::string FewNames(std::vector<std::string> names);

}  // namespace skiff
