#include "tools/cuda/emulation/libraries/cudnn_stand_in.h"

namespace skiff::cuda_emulation {

void* CudnnFunction(std::string_view) { return nullptr; }

}  // namespace skiff::cuda_emulation
