// gather: Out[..., i, ...] = X[..., Index[i], ...] along `axis`.
//
// Source: Fluid's gather. Index is [m] or [m, 1]; a scalar drops the axis. A negative axis is an
// Error: Fluid's shape rule and kernel disagree about it.
#include "operators/tensor/kernels/take.h"

namespace skiff {

void RegisterGather(OpRegistry& registry) {
  AddTakeOps(registry, {.type = "gather",
                        .doc = "Out[..., i, ...] = X[..., Index[i], ...] along `axis`.",
                        .axis_attr = "axis",
                        .scalar_index = true,
                        .axis_slot = true});
}

}  // namespace skiff
