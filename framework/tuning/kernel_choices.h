// Which kernel candidates a tuner has taken, and the file that remembers it:
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
  std::string kernel;
  std::map<std::string, double> seconds;  // by candidate that was timed
  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

struct KernelChoices {
  // What the times hold for: the processor and the kernels' libraries, by name.
  std::map<std::string, std::string> machine;
  std::map<std::string, KernelChoice> by_key;
  friend bool operator==(const KernelChoices&, const KernelChoices&) = default;
};

std::string PrintKernelChoices(const KernelChoices& choices);
// Error (kDataLoss) naming `source` and the line unless the text is one that PrintKernelChoices
// gives; kUnimplemented for another version of the format.
KernelChoices ParseKernelChoices(std::string_view text, const std::string& source);

// Where the machine of `choices` isn't `machine`: "cpu is A here, B there", with ", " between.
// Empty: nowhere.
std::string MachineDifference(const std::map<std::string, std::string>& machine,
                              const KernelChoices& choices);

}  // namespace skiff
