// c_allreduce_sum: Out = the sum of X over all ranks.
//
// Source: Fluid's c_allreduce_sum, without its gradient. The sum has an order, that of the ranks:
// with `mean`, N ranks get the bits that gradient_merge gets of N runs. Half is added in float32,
// and rounded once or not at all (out_dtype).
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/half.h"

namespace skiff {

void RegisterCAllreduceSum(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allreduce_sum";
  def.doc =
      "Out = X0 + X1 + ..., the sum of X over all ranks, divided by their number with `mean`.";
  def.inputs = {{.name = "X", .doc = "Floats, int32 or int64, of one shape on all ranks."},
                SkipSlot()};
  def.outputs = {{.name = "Out", .doc = "Like X, or float32 (out_dtype)."}};
  def.attrs = RingAttrs();
  for (AttrDef& attr : SumAttrs()) def.attrs.push_back(std::move(attr));
  def.infer = InferSum;
  // X may be half while Out is float32: InferSum knows.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  def.collective = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      "c_allreduce_sum", []<typename>(PrepareContext& context) {
        return PrepareAllReduce(context, HostReducer(), RankReduction::kSum);
      });
}

}  // namespace skiff
