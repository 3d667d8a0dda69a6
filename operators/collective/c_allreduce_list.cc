// c_allreduce_list: Out[i] = the sum of X[i] over all ranks, for each tensor of a list.
//
// The tensors go out as one array: what makes many small messages expensive is paid once. If they
// lie one after the other (is_flat), nothing is copied; otherwise what a message carries is
// collected in scratch memory. The bits are those of c_allreduce_sum. Fluid has no counterpart: its
// coalesce_tensor makes the list one tensor.
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/half.h"

namespace skiff {
void RegisterCAllreduceList(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allreduce_list";
  def.doc =
      "Out[i] = X0[i] + X1[i] + ..., the sum of X[i] over all ranks, for each tensor of a list: "
      "c_allreduce_sum of many tensors.";
  def.inputs = {{.name = "X",
                 .doc = "Floats, int32 or int64, all of one dtype, and each of one shape on all "
                        "ranks.",
                 .duplicable = true},
                SkipSlot()};
  def.outputs = {{.name = "Out", .doc = "Like X, or float32 (out_dtype).", .duplicable = true}};
  def.attrs = RingAttrs();
  for (AttrDef& attr : SumAttrs()) def.attrs.push_back(std::move(attr));
  def.attrs.push_back(FlatListAttr());
  def.infer = InferSum;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  def.update = UpdateRule{.lists = {"X"}};
  def.collective = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      "c_allreduce_list", []<typename>(PrepareContext& context) {
        return PrepareAllReduce(context, HostReducer(), RankReduction::kSum);
      });
}

}  // namespace skiff
