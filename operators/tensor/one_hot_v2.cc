// one_hot_v2: Out[i, X[i]] = 1, 0 elsewhere.
//
// Source: Fluid's one_hot_v2: Out has the dims of X and `depth`. `allow_out_of_range` has
// its meaning of Fluid 1.x; PaddlePaddle 2.6 accepts the attribute and ignores it.
#include "operators/tensor/kernels/one_hot_rows.h"

namespace skiff {

void RegisterOneHotV2(OpRegistry& registry) {
  AddOneHotOp(registry, {.type = "one_hot_v2",
                         .doc = "Out[i, X[i]] = 1, 0 elsewhere.",
                         .x_doc = "Indices, int32 or int64, of any shape."});
}

}  // namespace skiff
