// Conversions between command lines and text. Doesn't depend on gflags.
#pragma once

#include <string>
#include <vector>

namespace skiff {

// Splits the value of a list flag: "a,b" -> {"a", "b"}. Empty parts are left out.
std::vector<std::string> SplitNames(const std::string& names);

// Returns one line of text that a shell splits into the arguments again.
std::string ShellCommand(const std::vector<std::string>& arguments);

}  // namespace skiff
