// c_allreduce_list: Out[i] = the sum of X[i] over all ranks, for each tensor of a list.
//
// The tensors go out as one array: what makes many small messages expensive is paid once. If they
// lie one after the other (is_flat), nothing is copied; otherwise what a message carries is
// collected in scratch memory. The bits are those of c_allreduce_sum. Fluid has no counterpart: its
// coalesce_tensor makes the list one tensor.
#include <utility>

#include "operators/collective/kernels/all_reduce.h"

namespace skiff {

void RegisterCAllreduceList(OpRegistry& registry) {
  OpDef def =
      SumDef("c_allreduce_list",
             "Out[i] = X0[i] + X1[i] + ..., the sum of X[i] over all ranks, for each tensor "
             "of a list: c_allreduce_sum of many tensors.",
             true);
  def.attrs.push_back(OrderAttr());
  registry.Add(std::move(def));
  AddCpuAllReduce(registry, "c_allreduce_list", RankReduction::kSum);
}

}  // namespace skiff
