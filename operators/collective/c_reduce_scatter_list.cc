// c_reduce_scatter_list: Out[i] = the sum of X[i] over all ranks, in the elements of this rank's
// part; what Out holds elsewhere is undefined.
//
// Take the elements of all tensors one after the other. The part of rank r is elements [parts[r],
// parts[r + 1]); it begins and ends anywhere in a tensor. A rank sends each element just once, to
// the rank that needs it. The bits are those of c_allreduce_list in the order of ranks.
// c_all_gather_list is its counterpart.
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  InferSum(context);
  CheckParts(context);
}

}  // namespace

void RegisterCReduceScatterList(OpRegistry& registry) {
  OpDef def;
  def.type = "c_reduce_scatter_list";
  def.doc =
      "Out[i] = X0[i] + X1[i] + ..., the sum of X[i] over all ranks, in the elements of this "
      "rank's "
      "part; the elements of all tensors are taken one after the other. Others are undefined.";
  def.inputs = {{.name = "X",
                 .doc = "Floats, int32 or int64, all of one dtype, and each of one shape on all "
                        "ranks.",
                 .duplicable = true},
                SkipSlot()};
  def.outputs = {{.name = "Out", .doc = "Like X, or float32 (out_dtype).", .duplicable = true}};
  def.attrs = RingAttrs();
  for (AttrDef& attr : SumAttrs()) {
    // The order is that of ranks: the fastest, too, for parts.
    if (attr.name != "order") def.attrs.push_back(std::move(attr));
  }
  def.attrs.push_back(PartsAttr());
  def.attrs.push_back(FlatListAttr());
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  def.update = UpdateRule{.lists = {"X"}};
  def.collective = true;
  def.own_outputs = {"Out"};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      "c_reduce_scatter_list", []<typename>(PrepareContext& context) {
        return PrepareAllReduce(context, HostReducer(), RankReduction::kSum);
      });
}

}  // namespace skiff
