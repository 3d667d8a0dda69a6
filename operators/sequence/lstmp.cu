// CUDA kernels of lstmp: lstm.cu has them.
#include "operators/sequence/kernels/lstm_ops.h"

namespace skiff {

void RegisterLstmpCuda(OpRegistry& registry) { AddLstmCudaKernels(registry, "lstmp"); }

}  // namespace skiff
