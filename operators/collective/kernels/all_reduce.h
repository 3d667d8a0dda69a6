// The kernel of ops that reduce each of X over all ranks to the Out of the same index:
// c_allreduce_sum, c_allreduce_list, c_allreduce_max and c_reduce_scatter_list, which has parts.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "operators/collective/kernels/reducer.h"

namespace skiff {

// Returns the attributes of sums: mean, order and out_dtype.
std::vector<AttrDef> SumAttrs();
// Returns the definition of kIsFlatAttr for a list.
AttrDef FlatListAttr();
// Sets the outputs of a sum, as out_dtype says. Throws Error for attributes, and for Skip, that
// don't fit X.
void InferSum(OpContext& context);

// Returns the kernel. `reducer`, of the place of the kernel, must outlive it. X are floats, int32
// or int64.
std::unique_ptr<Kernel> PrepareAllReduce(PrepareContext& context, const Reducer& reducer,
                                         RankReduction reduction);

}  // namespace skiff
