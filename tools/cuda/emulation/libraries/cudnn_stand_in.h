// Placeholder until the stand-in is there.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name; nullptr if it has none.
void* CudnnFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
