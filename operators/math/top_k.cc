// top_k: the k largest values of each row (the last dim) of X, in descending order, and their
// places in the row.
// Source: Fluid's top_k; dX is dOut at the places found, 0 elsewhere.
#include "operators/math/kernels/largest_elements.h"

namespace skiff {

void RegisterTopK(OpRegistry& registry) { RegisterTopKOp(registry, /*is_v2=*/false); }

}  // namespace skiff
