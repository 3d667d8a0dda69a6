// c_allreduce_max: Out = the largest X of all ranks, element by element; NaN if a rank has NaN.
//
// Source: Fluid's c_allreduce_max.
#include <utility>

#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/collective_definition.h"

namespace skiff {

void RegisterCAllreduceMax(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allreduce_max";
  def.doc = "Out = the largest X of all ranks, element by element; NaN if a rank has NaN.";
  def.inputs = {{.name = "X", .doc = "Floats, int32 or int64, of one shape on all ranks."}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = RingAttrs();
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "the gradient would go to a rank that the data choose";
  def.in_place = {{"X", "Out"}};
  def.collective = true;
  registry.Add(std::move(def));
  AddCpuAllReduce(registry, "c_allreduce_max", RankReduction::kLargest);
}

}  // namespace skiff
