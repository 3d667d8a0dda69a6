// index_select: Out[..., i, ...] = X[..., Index[i], ...] along `dim`.
//
// Source: Fluid's index_select, a gather whose axis may be negative and whose Index is never a
// scalar.
#include "operators/tensor/kernels/take.h"

namespace skiff {

void RegisterIndexSelect(OpRegistry& registry) {
  AddTakeOps(registry, {.type = "index_select",
                        .doc = "Out[..., i, ...] = X[..., Index[i], ...] along `dim`.",
                        .axis_attr = "dim",
                        .negative_axis = true});
}

}  // namespace skiff
