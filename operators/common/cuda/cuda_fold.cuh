// Reductions over axes on CUDA as a part of a kernel, with its workspace; and their reverse.
// cuda_fold_tiles.cuh explains rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/tensor/shape.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/cuda/cuda_fold_tiles.cuh"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

static_assert(CudaDims::kMaxRank == Shape::kMaxRank);

inline CudaFoldView::CudaFoldView(const Shape& shape, const AxisFlags& is_reduced) {
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    AddOutside(shape[axis], is_reduced[static_cast<size_t>(axis)]);
  }
}

// The work of one rule on views of at most `elements` elements; made by the factory.
template <class Rule>
class CudaFold {
 public:
  CudaFold(PrepareContext& context, int64_t elements)
      : workspace_(context.RequestWorkspace(FoldWorkspaceBytes<Rule>(elements))) {}

  // `what` names the work in an Error.
  void Run(const KernelContext& run, const char* what, const CudaFoldView& view,
           const Rule& rule) const {
    const char* failure =
        LaunchFold(view, rule, run.workspace(workspace_), run.device().stream->handle());
    SKIFF_ENFORCE(failure == nullptr, kIo, what, ": launch failed: ", failure);
  }

 private:
  int workspace_;
};

// The number of an element's output, for what is the reverse of a reduction.
class CudaOutputOf {
 public:
  CudaOutputOf(const Shape& shape, const AxisFlags& is_reduced) {
    int64_t stride = 1;  // of the outputs
    bool previous_is_reduced = false;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const bool axis_is_reduced = is_reduced[static_cast<size_t>(axis)];
      if (shape[axis] == 1) continue;
      dims_.AddOutside(shape[axis], axis_is_reduced ? 0 : stride,
                       axis_is_reduced == previous_is_reduced);
      if (!axis_is_reduced) stride *= shape[axis];
      previous_is_reduced = axis_is_reduced;
    }
  }

  __device__ int64_t operator()(int64_t element) const { return dims_.PlaceOf(element); }

 private:
  CudaDims dims_;
};

}  // namespace skiff
