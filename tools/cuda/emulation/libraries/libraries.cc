// Stand-ins for NVIDIA's libraries, which show mistakes in how they are called.
//
// A stand-in has what Skiff calls. It refuses calls that the library's documentation doesn't allow,
// and calls that Skiff mustn't make. Its kernels are plain, and the emulation checks their
// accesses.
#include <string_view>

#include "framework/base/shared_library.h"
#include "tools/cuda/emulation/libraries/cublas_lt_stand_in.h"
#include "tools/cuda/emulation/libraries/cudnn_stand_in.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

// A program must also do without, as on a machine that lacks the libraries.
template <void* (*kFunction)(std::string_view)>
void* IfThere(std::string_view name) {
  return TheOptions().has_libraries ? kFunction(name) : nullptr;
}

[[maybe_unused]] const bool are_in_place = [] {
  SharedLibrary::Replace("libcublasLt.so", IfThere<CublasLtFunction>);
  SharedLibrary::Replace("libcudnn.so", IfThere<CudnnFunction>);
  return true;
}();

}  // namespace
}  // namespace skiff::cuda_emulation
