// The choices of a tuner, and the file that keeps them:
//
//   skiff kernel choices, version 1
//   Highway: 1.0.3, AVX3
//   cpu: AMD EPYC 9B45
//   oneDNN: 2.6.3, cpu isa 0xe7
//
//   winograd<TAB>winograd=0.00081, onednn=0.00123<TAB>conv2d {…} Input=float32 …
//
// A line for each key: the candidate taken, the seconds that each took, the key (tuning_key.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace skiff {

struct KernelChoice {
  std::string kernel = {};
  std::map<std::string, double> seconds = {};  // by candidate that was timed
  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

struct KernelChoices {
  // The machine on which the times hold: the processor and the kernels' libraries, by name.
  std::map<std::string, std::string> machine = {};
  std::map<std::string, KernelChoice> by_key = {};
  friend bool operator==(const KernelChoices&, const KernelChoices&) = default;
};

std::string PrintKernelChoices(const KernelChoices& choices);
// Parses the text that PrintKernelChoices gives. Throws an Error (kDataLoss), naming `source` and
// the line, for any other text, and kUnimplemented for another version of the format.
KernelChoices ParseKernelChoices(std::string_view text, const std::string& source);

}  // namespace skiff
