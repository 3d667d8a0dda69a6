// stack: Y = the tensors X, all of one shape, side by side along a new axis `axis`.
//
// Source: Fluid's stack. The gradient splits Y@GRAD along the axis.
#include "operators/common/input_checks.h"
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

void InferStackGrad(OpContext& context) {
  const Shape part = CommonShape(context, "X");
  const int axis = AxisOf(context, part.rank() + 1);
  const auto count = static_cast<int64_t>(context.InputCount("X"));
  CheckInputLike(context, "Y@GRAD", WithAxis(part, axis, count), context.Input("X").dtype);
  for (size_t i = 0; i < context.InputCount("X"); ++i) context.SetOutputLike("X@GRAD", "X", i);
}

AttrDef AxisAttr() {
  return {.name = "axis",
          .type = AttrType::kInt,
          .default_value = int32_t{0},
          .doc = "The position of the new axis in Y, negative from the back."};
}

void AddStackGrad(OpRegistry& registry) {
  OpDef def;
  def.type = "stack_grad";
  def.doc = "X@GRAD[i] = Y@GRAD at index i of `axis`.";
  def.inputs = {{.name = "X", .doc = "Inputs of stack.", .duplicable = true, .shape_only = true},
                {.name = "Y@GRAD", .doc = "The gradient of Y."}};
  def.outputs = {{.name = "X@GRAD", .doc = "The gradients of X.", .duplicable = true}};
  def.attrs = {AxisAttr()};
  def.infer = InferStackGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "Y@GRAD";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "stack_grad", [](PrepareContext& context) {
    return MakeUnstackKernel(context, "Y@GRAD", "X@GRAD",
                             AxisOf(context, context.Input("Y@GRAD").shape.rank()));
  });
}

}  // namespace

void RegisterStack(OpRegistry& registry) {
  OpDef def;
  def.type = "stack";
  def.doc = "Y = X[0], X[1], … side by side along the new axis `axis`.";
  def.inputs = {{.name = "X", .doc = "One or more tensors of one shape.", .duplicable = true}};
  def.outputs = {
      {.name = "Y", .doc = "The dims of X with the number of tensors inserted at `axis`."}};
  def.attrs = {AxisAttr()};
  def.infer = InferStack;
  def.grad = GradOp("stack_grad", {"X", "Y@GRAD"}, {"X@GRAD"});
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "stack", [](PrepareContext& context) {
    return MakeStackKernel(context, "X", "Y", AxisOf(context, context.Input("X").shape.rank() + 1));
  });
  AddStackGrad(registry);
}

}  // namespace skiff
