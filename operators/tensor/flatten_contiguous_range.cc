// flatten_contiguous_range: Out = X with the axes start_axis … stop_axis merged into one.
//
// Source: Fluid's flatten_contiguous_range. A scalar becomes a vector of one element.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferFlattenRange(OpContext& context) {
  const std::string op = context.op().type;
  const Shape& x = context.Input("X").shape;
  if (x.rank() == 0) {
    SetReshapedOutput(context, {1});
    return;
  }
  const int start = NormalizeAxis(context.IntAttr("start_axis"), x.rank(), op + ": start_axis");
  const int stop = NormalizeAxis(context.IntAttr("stop_axis"), x.rank(), op + ": stop_axis");
  SKIFF_ENFORCE(start <= stop, kInvalidArgument, op, ": start_axis = ", start,
                " is greater than stop_axis = ", stop);
  Shape out(x.dims().first(static_cast<size_t>(start)));
  out.Append(ProductOrUnknown(x, start, stop + 1));
  for (int axis = stop + 1; axis < x.rank(); ++axis) out.Append(x[axis]);
  SetReshapedOutput(context, out);
}

}  // namespace

void RegisterFlattenContiguousRange(OpRegistry& registry) {
  OpDef def;
  def.type = "flatten_contiguous_range";
  def.doc =
      "Out has the elements of X, with axes start_axis … stop_axis (inclusive) merged into one.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "X with fewer axes."}, XShapeOutput()};
  def.attrs = {{.name = "start_axis",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "The first axis to merge, negative from the back."},
               {.name = "stop_axis",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "The last axis to merge, negative from the back."}};
  def.infer = InferFlattenRange;
  def.precision = Precision::kFollow;
  def.grad = ReshapeGradRule("flatten_contiguous_range_grad");
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "flatten_contiguous_range", CopyFactory("X", "Out"));
  AddReshapeGrad(registry, "flatten_contiguous_range_grad", "flatten_contiguous_range");
}

}  // namespace skiff
