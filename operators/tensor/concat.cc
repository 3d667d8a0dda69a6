// concat: Out = the inputs X one after the other along `axis`.
//
// Source: Fluid's concat; the gradient cuts Out@GRAD into pieces again.
#include "framework/base/error.h"
#include "operators/tensor/kernels/axis_parts.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

int AxisOf(const OpContext& context, int rank) {
  return NormalizeAxis(context.IntAttr("axis"), rank, context.op().type + ": axis");
}

void InferConcat(OpContext& context) {
  const TensorMeta& first = context.Input("X");
  if (!context.Knows("axis")) {
    return context.SetOutput("Out", UnknownDims(first.shape.rank()), first.dtype);
  }
  const int axis = AxisOf(context, first.shape.rank());
  Shape out = first.shape;
  int64_t extent = 0;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(x.shape.rank() == out.rank() && x.dtype == first.dtype, kInvalidArgument,
                  "concat: X[", i, "] is ", x.dtype, " ", x.shape,
                  ", expected the rank and dtype of "
                  "X[0], ",
                  first.dtype, " ", first.shape);
    for (int k = 0; k < out.rank(); ++k) {
      if (k == axis) continue;
      out[k] = MergeDims(out[k], x.shape[k],
                         StrCat("concat: dim ", k, " of X[", i, "] of shape ", x.shape,
                                " and of the inputs before it"));
    }
    extent = extent < 0 || x.shape[axis] < 0 ? -1 : extent + x.shape[axis];
  }
  out[axis] = extent;
  context.SetOutput("Out", out, first.dtype);
  // The rows stay those of X unless others follow them.
  SetLodLevel(context, /*same_rows=*/axis != 0);
}

// Returns the extents of the inputs along `axis`.
std::vector<int64_t> ExtentsOf(const OpContext& context, int axis) {
  std::vector<int64_t> extents;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    extents.push_back(context.Input("X", i).shape[axis]);
  }
  return extents;
}

std::unique_ptr<Kernel> PrepareConcat(PrepareContext& context) {
  const int axis = AxisOf(context, context.Output("Out").shape.rank());
  return MakeJoinKernel(context, "X", "Out", axis, ExtentsOf(context, axis));
}

void InferConcatGrad(OpContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  if (!context.Knows("axis")) {
    for (size_t i = 0; i < context.InputCount("X"); ++i) context.SetOutputLike("X@GRAD", "X", i);
    return;
  }
  const int axis = AxisOf(context, grad.shape.rank());
  int64_t extent = 0;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const Shape& x = context.Input("X", i).shape;
    const DType dtype = context.Input("X", i).dtype;
    SKIFF_ENFORCE(x.rank() == grad.shape.rank() && dtype == grad.dtype, kInvalidArgument,
                  "concat_grad: X[", i, "] is ", dtype, " ", x,
                  ", expected the rank and dtype of Out@GRAD, ", grad.dtype, " ", grad.shape);
    for (int k = 0; k < x.rank(); ++k) {
      if (k == axis) continue;
      MergeDims(x[k], grad.shape[k],
                StrCat("concat_grad: dim ", k, " of X[", i, "] and of Out@GRAD"));
    }
    extent = extent < 0 || x[axis] < 0 ? -1 : extent + x[axis];
    context.SetOutputLike("X@GRAD", "X", i);
  }
  MergeDims(extent, grad.shape[axis],
            "concat_grad: the sum of the inputs' extents and that of Out@GRAD");
}

std::unique_ptr<Kernel> PrepareConcatGrad(PrepareContext& context) {
  const int axis = AxisOf(context, context.Input("Out@GRAD").shape.rank());
  return MakeSplitKernel(context, "Out@GRAD", "X@GRAD", axis, ExtentsOf(context, axis));
}

AttrDef AxisAttr() {
  return {.name = "axis",
          .type = AttrType::kInt,
          .default_value = int32_t{0},
          .doc = "The axis along which the inputs follow each other, negative from the back."};
}

void AddConcatGrad(OpRegistry& registry) {
  OpDef def;
  def.type = "concat_grad";
  def.doc = "X@GRAD[i] = the slice of Out@GRAD that X[i] became.";
  def.inputs = {{.name = "X", .doc = "Inputs of concat.", .duplicable = true, .shape_only = true},
                AttributeSlot("AxisTensor", "axis"),
                {.name = "Out@GRAD", .doc = "The gradient of Out."}};
  def.outputs = {{.name = "X@GRAD", .doc = "The gradients of X.", .duplicable = true}};
  def.attrs = {AxisAttr()};
  def.infer = InferConcatGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "Out@GRAD";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "concat_grad", PrepareConcatGrad);
}

}  // namespace

void RegisterConcat(OpRegistry& registry) {
  OpDef def;
  def.type = "concat";
  def.doc = "Out = X[0], X[1], … one after the other along `axis`.";
  def.inputs = {{.name = "X",
                 .doc = "One or more tensors of equal shapes, except for dim `axis`.",
                 .duplicable = true},
                AttributeSlot("AxisTensor", "axis")};
  def.outputs = {{.name = "Out", .doc = "The concatenation."}};
  def.attrs = {AxisAttr()};
  def.infer = InferConcat;
  def.grad = GradOp("concat_grad", {"X", "AxisTensor", "Out@GRAD"}, {"X@GRAD"});
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "concat", PrepareConcat);
  AddConcatGrad(registry);
}

}  // namespace skiff
