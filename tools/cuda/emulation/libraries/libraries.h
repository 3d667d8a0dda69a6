// Stand-ins for NVIDIA's libraries, which show mistakes in how they are called.
//
// A stand-in has what Skiff calls. It refuses calls that the library's documentation doesn't allow,
// and calls that Skiff mustn't make. Its kernels are plain, and the emulation checks their
// accesses.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the function of this name, of cuBLASLt or cuDNN. nullptr if the stand-ins have none, or
// if Options::has_libraries is false: then the program must do without, as on a machine that lacks
// the libraries.
void* LibraryFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
