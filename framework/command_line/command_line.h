// The common part of all command-line programs: flags (gflags), help, errors, exit status.
//
//   int main(int argc, char** argv) {
//     return skiff::CommandMain(
//         argc, argv, {.usage = "op_bench [flags]", .summary = "Times operators.", .run = Time});
//   }
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skiff {

struct Command {
  std::string usage;         // what a user types: "op_bench [flags]"
  std::string summary;       // what the program does
  std::function<int()> run;  // called once the flags are set; returns the exit status
  std::function<std::string()> epilogue = {};  // returns the end of the help text
  // Overrides of flag defaults: name and value.
  std::vector<std::pair<std::string, std::string>> flag_defaults = {};
  // The flags that the command accepts; empty: all.
  std::vector<std::string> flags = {};
  // The flag that the one argument without a dash sets, such as the name of a file. The command
  // line can't set it in another way. Empty: the command accepts flags only.
  std::string operand = {};
};

// One of several commands in one program.
struct Subcommand {
  std::string name;     // what a user types after the program's name
  std::string summary;  // one line of the program's help
  Command command;      // lists its flags; those of other subcommands aren't accepted
};

// Sets the flags from --name=value, --name value, --name and --noname (the last two for bools),
// calls command.run() and returns the exit status:
// - the status of run();
// - 0 after --help, which lists the command's flags, or all that files below `models`, `tools` and
//   `tests` define;
// - 1 if run() throws;
// - 2 for an argument that isn't a flag, an unknown flag, or a missing or illegal value. If the
//   command has an operand, exactly one argument that isn't a flag must be there.
//
// Prints errors after `error: `, on as many lines as the message has.
//
// Relative paths refer to the user's directory: `bazel run` starts a program in the
// runfiles directory, so CommandMain changes to the user's.
int CommandMain(int argc, char** argv, const Command& command);

// The same for a program whose first argument names a subcommand. `--help` alone lists them.
// Returns 2 for an unknown or missing name.
int SubcommandMain(int argc, char** argv, const std::string& summary,
                   const std::vector<Subcommand>& subcommands);

// Prints "error: MESSAGE" to stderr, behind all that the program has printed to stdout.
void PrintError(const std::string& message);

// Returns whether the command line sets the flag, even to the default value. Throws an Error
// (kNotFound) if there is no such flag.
bool IsFlagGiven(const std::string& name);

// Throws an Error (kInvalidArgument) if the command line sets one of the flags, which says that it
// would change nothing, and why: "the world asks questions".
void RefuseFlags(const std::vector<std::string>& names, std::string_view why);

}  // namespace skiff
