// unstack: Y[i] = X at index i of `axis`, without that axis.
//
// Source: Fluid's unstack. `num` and the number of outputs equal the extent of the axis. The
// gradient stacks the gradients of Y.
#include "framework/base/error.h"
#include "operators/tensor/kernels/axis_parts.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

// `rank` is that of X.
int AxisOf(const OpContext& context, int rank) {
  return NormalizeAxis(context.IntAttr("axis"), rank, context.op().type + ": axis");
}

void InferUnstack(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const int axis = AxisOf(context, x.shape.rank());
  const auto outputs = static_cast<int64_t>(context.OutputCount("Y"));
  SKIFF_ENFORCE(context.IntAttr("num") == outputs, kInvalidArgument,
                "unstack: num = ", context.IntAttr("num"), " for ", outputs, " outputs");
  MergeDims(outputs, x.shape[axis],
            StrCat("unstack: num and the extent of X of shape ", x.shape, " along axis ", axis));
  Shape part;
  for (int k = 0; k < x.shape.rank(); ++k) {
    if (k != axis) part.Append(x.shape[k]);
  }
  for (size_t i = 0; i < context.OutputCount("Y"); ++i) context.SetOutput("Y", part, x.dtype, i);
}

void InferUnstackGrad(OpContext& context) {
  const Shape part = CommonShape(context, "Y@GRAD");
  const int axis = AxisOf(context, part.rank() + 1);
  const auto extent = static_cast<int64_t>(context.InputCount("Y@GRAD"));
  context.SetOutput("X@GRAD", WithAxis(part, axis, extent), context.Input("Y@GRAD").dtype);
}

}  // namespace

void RegisterUnstack(OpRegistry& registry) {
  OpDef def;
  def.type = "unstack";
  def.doc = "Y[i] = X at index i of `axis`.";
  def.inputs = {{.name = "X", .doc = "Of rank 1 or more."}};
  def.outputs = {{.name = "Y", .doc = "X without the axis, `num` times.", .duplicable = true}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The axis of X to split, negative from the back."},
               {.name = "num",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The number of outputs, which is the extent of the axis."}};
  def.infer = InferUnstack;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"Y@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = the gradients of Y side by side along `axis`.";
  grad.infer = InferUnstackGrad;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "unstack", [](PrepareContext& context) {
    return MakeUnstackKernel(context, "X", "Y", AxisOf(context, context.Input("X").shape.rank()));
  });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "unstack_grad", [](PrepareContext& context) {
    return MakeStackKernel(context, "Y@GRAD", "X@GRAD",
                           AxisOf(context, context.Input("Y@GRAD").shape.rank() + 1));
  });
}

}  // namespace skiff
