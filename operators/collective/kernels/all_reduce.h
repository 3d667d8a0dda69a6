// The kernel of ops that reduce each of X over all ranks to the Out of the same index:
// c_allreduce_sum, c_allreduce_list, c_allreduce_max and c_reduce_scatter_list, which has parts.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "operators/collective/kernels/reducer.h"

namespace skiff {

// Returns the definition of a sum of X over all ranks, of a list of X or of one. It is whole except
// for OrderAttr and PartsAttr.
OpDef SumDef(StaticText type, StaticText doc, bool takes_lists);
// Returns the attribute `order`: that of ranks, or that of the library.
AttrDef OrderAttr();
// Sets the outputs of a sum, as out_dtype says: the rule of SumDef. Throws Error for attributes,
// and for Skip, that don't fit X.
void InferSum(OpContext& context);

// Returns the kernel. `reducer`, of the place of the kernel, must outlive it. X are floats, int32
// or int64.
std::unique_ptr<Kernel> PrepareAllReduce(PrepareContext& context, const Reducer& reducer,
                                         RankReduction reduction);
// Adds the kernels of the CPU.
void AddCpuAllReduce(OpRegistry& registry, const char* type, RankReduction reduction);

}  // namespace skiff
