// The command line of a program whose flags are gflags, with Skiff's errors and help.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace skiff::models {

// Gives flags other defaults: {name, value}. Error (kInvalidArgument) for an unknown flag or a
// value that it can't have.
void SetFlagDefaults(const std::vector<std::pair<std::string, std::string>>& defaults);

// Sets flags from --name=value, --name value, --name and --noname (the last two for bools). Returns
// false if --help is among the arguments. Error (kInvalidArgument) for an unknown flag, a value
// that the flag can't have, a missing value, and an argument that is no flag.
bool ParseFlags(const std::vector<std::string>& arguments);

// All flags that files below a folder `models` define, with defaults, in the order of their names;
// libraries' own are left out.
std::string FlagsHelp();

// Arguments as a shell takes them.
std::string ShellCommand(const std::vector<std::string>& arguments);

}  // namespace skiff::models
