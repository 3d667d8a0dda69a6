// size: Out = the number of elements of Input, int64.
//
// Source: Fluid's size.
#include <cstdint>

#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterSize(OpRegistry& registry) {
  OpDef def;
  def.type = "size";
  def.doc = "Out = the number of elements of Input.";
  def.inputs = {{.name = "Input", .doc = "Any tensor.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "int64, a scalar."}};
  def.infer = [](OpContext& context) { context.SetOutput("Out", Shape(), DType::kInt64); };
  // The dtype of Input has no say.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output depends on no element of Input";
  def.is_on_host = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "size", [](PrepareContext& context) {
    return MakeKernel(
        [count = context.Input("Input").shape.element_count(),
         out = Out<int64_t>(context, "Out")](const KernelContext& run) { *out(run) = count; });
  });
}

}  // namespace skiff
