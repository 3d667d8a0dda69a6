// index_select: Out[..., i, ...] = X[..., Index[i], ...] along `dim`.
//
// Source: Fluid's index_select: gather with an axis that may count from the back and an Index that
// is never a scalar.
#include "operators/tensor/kernels/take.h"

namespace skiff {

void RegisterIndexSelect(OpRegistry& registry) {
  AddTakeOps(registry, {.type = "index_select",
                        .doc = "Out[..., i, ...] = X[..., Index[i], ...] along `dim`.",
                        .axis_attr = "dim",
                        .negative_axis = true});
}

}  // namespace skiff
