// c_reduce_scatter_list: Out[i] = the sum of X[i] over all ranks, in the elements of this rank's
// part; what Out holds elsewhere is undefined.
//
// Take the elements of all tensors one after the other. The part of rank r is elements [parts[r],
// parts[r + 1]); it begins and ends anywhere in a tensor. A rank sends each element just once, to
// the rank that needs it. The bits are those of c_allreduce_list in the order of ranks.
// c_all_gather_list is its counterpart.
#include <utility>

#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/collective_definition.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  InferSum(context);
  CheckParts(context);
}

}  // namespace

void RegisterCReduceScatterList(OpRegistry& registry) {
  // Without `order`: that of ranks is the fastest, too, for parts.
  OpDef def = SumDef(
      "c_reduce_scatter_list",
      "Out[i] = X0[i] + X1[i] + ..., the sum of X[i] over all ranks, in the elements of this "
      "rank's part; the elements of all tensors are taken one after the other. Others are "
      "undefined.",
      true);
  def.attrs.push_back(PartsAttr());
  def.infer = Infer;
  def.own_outputs = {"Out"};
  registry.Add(std::move(def));
  AddCpuAllReduce(registry, "c_reduce_scatter_list", RankReduction::kSum);
}

}  // namespace skiff
