#include "tools/cuda/emulation/libraries/libraries.h"

#include "tools/cuda/emulation/libraries/cublas_lt_stand_in.h"
#include "tools/cuda/emulation/libraries/cudnn_stand_in.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {

void* LibraryFunction(std::string_view name) {
  if (!TheOptions().has_libraries) return nullptr;
  void* const function = CublasLtFunction(name);
  return function != nullptr ? function : CudnnFunction(name);
}

}  // namespace skiff::cuda_emulation
