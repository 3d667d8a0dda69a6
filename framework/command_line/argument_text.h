// What stands on a command line, as text; for programs and for what else reads or shows it.
#pragma once

#include <string>
#include <vector>

namespace skiff {

// A list as a flag has it: "a,b" -> {"a", "b"}; empty parts are left out.
std::vector<std::string> SplitNames(const std::string& names);

// Arguments as a shell takes them.
std::string ShellCommand(const std::vector<std::string>& arguments);

}  // namespace skiff
