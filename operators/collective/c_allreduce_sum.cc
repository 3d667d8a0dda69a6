// c_allreduce_sum: Out = the sum of X over all ranks.
//
// Source: Fluid's c_allreduce_sum, without its gradient. The sum has an order, that of the ranks:
// with `mean`, N ranks get the bits that gradient_merge gets of N runs. Half is added in float32,
// and rounded once or not at all (out_dtype).
#include <utility>

#include "operators/collective/kernels/all_reduce.h"

namespace skiff {

void RegisterCAllreduceSum(OpRegistry& registry) {
  OpDef def = SumDef("c_allreduce_sum",
                     "Out = X0 + X1 + ..., the sum of X over all ranks, times 1 / the number of "
                     "ranks with `mean`.",
                     false);
  def.attrs.push_back(OrderAttr());
  registry.Add(std::move(def));
  AddCpuAllReduce(registry, "c_allreduce_sum", RankReduction::kSum);
}

}  // namespace skiff
