// Kernels that do forbidden things, and some that only look as if they did.
#pragma once

#include <string>
#include <vector>

namespace skiff::cuda_emulation {

// Launches a kernel, and copies the elements written by the kernel; the error's text if there was
// one.
std::string RunFault(const std::string& name, std::vector<float>* out);

// The right results: the sum of 0, 1, … 255 by warps, by atomics, and by reduced warps.
std::vector<float> SumsOfBlock();

}  // namespace skiff::cuda_emulation
