// is_empty: whether X has no elements.
//
// Source: Fluid's is_empty.
#include "framework/op/registry.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterIsEmpty(OpRegistry& registry) {
  OpDef def;
  def.type = "is_empty";
  def.doc = "Whether X has no elements.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "bool [1]."}};
  def.infer = [](OpContext& context) { context.SetOutput("Out", Shape({1}), DType::kBool); };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "the result is a bool";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "is_empty", [](PrepareContext& context) {
    return MakeRowsKernel([x = In<>(context, "X"), out = Out<bool>(context, "Out")](
                              const KernelContext& run) { *out(run) = x.count(run) == 0; });
  });
}

}  // namespace skiff
