// The frame of every program: flags (gflags), help, errors, exit status.
//
//   int main(int argc, char** argv) {
//     return skiff::CommandMain(
//         argc, argv, {.usage = "op_bench [flags]", .summary = "Times operators.", .run = Time});
//   }
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace skiff {

struct Command {
  std::string usage;                           // what a user types: "op_bench [flags]"
  std::string summary;                         // what the program does
  std::function<int()> run;                    // called once the flags are set; the exit status
  std::function<std::string()> epilogue = {};  // ends the help
  // Other defaults of flags: name and value.
  std::vector<std::pair<std::string, std::string>> flag_defaults = {};
  // The flags that it takes; empty: all.
  std::vector<std::string> flags = {};
};

// One of several commands in one program.
struct Subcommand {
  std::string name;     // what a user types behind the program's name
  std::string summary;  // one line of the program's help
  Command command;      // which names its flags, as others of the program aren't its own
};

// Sets the flags from --name=value, --name value, --name and --noname (the last two for bools) and
// returns run()'s status; 0 after --help, which lists the command's flags, or all that files below
// `models`, `tools` and `tests` define; 2 for an argument that is no flag, an unknown flag, a
// missing value or one that the flag can't have; 1 if run() throws. An error is printed behind
// `error: `, on as many lines as its message has.
//
// Relative paths are the user's: `bazel run` starts a program in its runfiles directory, which is
// left here for the one where the user typed.
int CommandMain(int argc, char** argv, const Command& command);

// The same for a program with subcommands, the first argument being the name of one. `--help` alone
// lists them; 2 for a name that is none of theirs, or no name.
int SubcommandMain(int argc, char** argv, const std::string& summary,
                   const std::vector<Subcommand>& subcommands);

}  // namespace skiff
