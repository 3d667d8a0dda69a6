// Cases in text files: what a program or a plan is before a piece of code works on it, and after.
//
//   Lines before the first case say what the cases of the file are about.
//
//   ## Drops the branch that nobody fetches
//   recompute=checkpoints        (lines of options, if there are any: each test has its own)
//   before:
//   plan cpu reuse=none { … }
//   after:
//   plan cpu reuse=none { … }
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace skiff::harness {

struct TextCase {
  std::string title = {};
  std::vector<std::string> options = {};
  // The texts end with a line break. They start after the colon: a text that is in the lines below
  // starts with a line break, too.
  std::string before = {};
  std::string after = {};
};

// Returns the cases of a file, whose path is relative to the root of the repository. Throws Error
// (kInvalidArgument) if a case lacks one of its texts.
std::vector<TextCase> ReadTextCases(const std::string& path);
// Returns the case of this title. Throws Error (kNotFound) if there is none.
TextCase ReadTextCase(const std::string& path, const std::string& title);

// Expects that `make` makes of each case the text after it. If SKIFF_WRITE_CASES is in the
// environment, writes what `make` makes into the file in the source tree instead, which `bazel run`
// says the place of:
//
//   SKIFF_WRITE_CASES=1 bazel run //tests/framework/autodiff:append_backward_test
//
// Read the difference before you commit it.
void CheckTextCases(const std::string& path,
                    const std::function<std::string(const TextCase&)>& make);

}  // namespace skiff::harness
