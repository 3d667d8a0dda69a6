// top_k_v2: the k largest or smallest values along an axis, in order, and their places.
// Source: Fluid's top_k_v2; dX is dOut at the places found, 0 elsewhere. With sorted = false any
// order is right, so the outputs are sorted all the same.
#include "operators/math/kernels/largest_elements.h"

namespace skiff {

void RegisterTopKV2(OpRegistry& registry) { RegisterTopKOp(registry, /*is_v2=*/true); }

}  // namespace skiff
