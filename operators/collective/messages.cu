// CUDA kernels of the ops that only move numbers between ranks, or do nothing.
#include "operators/common/cuda/cuda_memory_mover.h"

namespace skiff {

void RegisterMessagesCuda(OpRegistry& registry) {
  AddMovingKernels(
      registry, {"c_all_gather_list", "c_allgather", "c_broadcast", "c_comm_init",
                 "c_comm_init_all", "c_gen_nccl_id", "c_sync_calc_stream", "c_sync_comm_stream"});
}

}  // namespace skiff
