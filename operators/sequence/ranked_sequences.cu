// CUDA kernels of the ops that move the rows of sequences between their order and that of a rank
// table.
#include "operators/common/cuda/cuda_memory_mover.h"

namespace skiff {

void RegisterRankedSequencesCuda(OpRegistry& registry) {
  AddMovingKernels(
      registry, {"array_to_lod_tensor", "lod_tensor_to_array", "reorder_lod_tensor_by_rank",
                 "reorder_lod_tensor_by_rank_grad", "shrink_rnn_memory", "shrink_rnn_memory_grad"});
}

}  // namespace skiff
