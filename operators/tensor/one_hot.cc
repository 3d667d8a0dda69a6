// one_hot: Out[i, X[i, 0]] = 1, 0 elsewhere.
//
// Source: one_hot of Fluid 1.x (gone in PaddlePaddle 2.6), the older form of one_hot_v2: the last
// dim of X is 1 and becomes `depth`.
#include "operators/tensor/kernels/one_hot_rows.h"

namespace skiff {

void RegisterOneHot(OpRegistry& registry) {
  AddOneHotOp(registry, {.type = "one_hot",
                         .doc = "Out[i, X[i, 0]] = 1, 0 elsewhere.",
                         .x_doc = "Indices, int32 or int64, [..., 1].",
                         .ids_are_columns = true});
}

}  // namespace skiff
