// Reductions of a contiguous tensor along any of its dims, on CUDA: the plan, which is made on the
// host. cuda_reduction.cuh has the kernel.
//
// The dims that are kept, and those that are reduced, make two nests of loops. A block takes a tile
// of neighbouring results, and for each of them several lanes (threads), which take turns along the
// reduced loops. Lanes of a warp read neighbouring elements: those of one result if the last dim is
// reduced, else those of neighbouring results. If there are few tiles, the reduced loops are cut
// into parts, whose results go to a workspace, and a second launch combines them.
//
// The plan, and with it the order in which elements are combined, depends on the shape only.
#pragma once

#include <cstdint>
#include <span>

#include "operators/common/cuda_loops.h"

namespace skiff {

struct ReductionDim {
  int64_t size = 1;
  bool is_reduced = false;
};

class CudaReduction {
 public:
  static constexpr int kThreads = 256;  // of a block

  // Of one number.
  CudaReduction() = default;
  // The dims of the tensor, outermost first, at most Shape::kMaxRank of them.
  explicit CudaReduction(std::span<const ReductionDim> dims);

  // Returns the bytes of workspace for partial results of this size, for this tensor or one that
  // has fewer rows (dim 0). May be 0.
  int64_t WorkspaceBytes(int64_t bytes_of_partial) const;
  // The second launch: combines the parts, which are a tensor [parts, results].
  CudaReduction OfParts() const;

  // Used by the kernel.
  int64_t result_count = 1;
  int64_t reduced_count = 1;  // elements for each result; may be 0
  int64_t parts = 1;
  int tile = 1;          // results of a block
  int lanes = kThreads;  // of a result
  bool lanes_are_neighbours = true;
  CudaLoops<1> kept;
  CudaLoops<1> reduced;

 private:
  void ChooseTile(bool last_is_reduced);
};

}  // namespace skiff
