// stack: Y = the tensors X, all of one shape, side by side along a new axis `axis`.
//
// Source: Fluid's stack. The gradient splits Y@GRAD along the axis.
#include "operators/tensor/kernels/axis_parts.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

// `rank` is that of Y.
int AxisOf(const OpContext& context, int rank) {
  return NormalizeAxis(context.IntAttr("axis"), rank, context.op().type + ": axis");
}

void InferStack(OpContext& context) {
  const Shape part = CommonShape(context, "X");
  const int axis = AxisOf(context, part.rank() + 1);
  const auto count = static_cast<int64_t>(context.InputCount("X"));
  context.SetOutput("Y", WithAxis(part, axis, count), context.Input("X").dtype);
  SetLodLevel(context, /*same_rows=*/axis != 0, "X", "Y");
}

}  // namespace

void RegisterStack(OpRegistry& registry) {
  OpDef def;
  def.type = "stack";
  def.doc = "Y = X[0], X[1], … side by side along the new axis `axis`.";
  def.inputs = {{.name = "X", .doc = "One or more tensors of one shape.", .duplicable = true}};
  def.outputs = {
      {.name = "Y", .doc = "The dims of X with the number of tensors inserted at `axis`."}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The position of the new axis in Y, negative from the back."}};
  def.infer = InferStack;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD[i] = Y@GRAD at index i of `axis`.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "stack", [](PrepareContext& context) {
    return MakeStackKernel(context, "X", "Y", AxisOf(context, context.Input("X").shape.rank() + 1));
  });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "stack_grad", [](PrepareContext& context) {
    return MakeUnstackKernel(context, "Y@GRAD", "X@GRAD",
                             AxisOf(context, context.Input("Y@GRAD").shape.rank()));
  });
}

}  // namespace skiff
