// shape: Out = the dims of Input, int32.
//
// Source: Fluid's shape. A scalar has no dims: Out is empty.
#include <limits>

#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferShapeOp(OpContext& context) {
  const Shape& input = context.Input("Input").shape;
  for (const int64_t dim : input) {
    SKIFF_ENFORCE(dim <= std::numeric_limits<int32_t>::max(), kOutOfRange,
                  "shape: a dim of Input of shape ", input, " doesn't fit into 32 bits");
  }
  context.SetOutput("Out", {input.rank()}, DType::kInt32);
}

std::unique_ptr<Kernel> PrepareShape(PrepareContext& context) {
  return MakeKernel([shape = context.Input("Input").shape,
                     out = Out<int32_t>(context, "Out")](const KernelContext& run) {
    int32_t* dims = out(run);
    for (int axis = 0; axis < shape.rank(); ++axis) dims[axis] = static_cast<int32_t>(shape[axis]);
  });
}

}  // namespace

void RegisterShape(OpRegistry& registry) {
  OpDef def;
  def.type = "shape";
  def.doc = "Out = the dims of Input.";
  def.inputs = {{.name = "Input", .doc = "Any tensor.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "int32, [rank of Input]."}};
  def.infer = InferShapeOp;
  // The dtype of Input has no say.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output depends on no element of Input";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "shape", PrepareShape);
}

}  // namespace skiff
