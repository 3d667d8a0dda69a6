// The frame of a command-line tool whose flags are gflags.
#pragma once

namespace skiff {

// Reads the flags and returns run()'s status, or 1 after printing an Error as `error: …`. `usage`
// heads the help.
int CommandMain(int argc, char** argv, const char* usage, int (*run)());

}  // namespace skiff
