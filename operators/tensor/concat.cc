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

std::unique_ptr<Kernel> PrepareConcatGrad(PrepareContext& context) {
  const int axis = AxisOf(context, context.Input("Out@GRAD").shape.rank());
  return MakeSplitKernel(context, "Out@GRAD", "X@GRAD", axis, ExtentsOf(context, axis));
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
  def.attrs = {
      {.name = "axis",
       .type = AttrType::kInt,
       .default_value = int32_t{0},
       .doc = "The axis along which the inputs follow each other, negative from the back."}};
  def.infer = InferConcat;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "AxisTensor", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD[i] = the slice of Out@GRAD that X[i] became.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "concat", PrepareConcat);
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "concat_grad", PrepareConcatGrad);
}

}  // namespace skiff
