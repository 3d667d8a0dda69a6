// reshape2: Out = the elements of X in the same order, in another shape.
//
// Source: Fluid's reshape2. In `shape`, 0 copies the dim of X at that position, and one -1 is
// inferred from the number of elements. Copied dims cancel out first, so -1 has a value even if a
// copied dim is unknown or 0.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

// Returns the dim that -1 at position `inferred` means, or -1 if it is not known yet.
int64_t InferDim(const Shape& x, const Shape& wanted, int inferred, const OpContext& context) {
  Shape left_in_x;
  Shape left_in_out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool copied = axis < wanted.rank() && wanted[axis] == 0;
    if (!copied) left_in_x.Append(x[axis]);
  }
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if (axis != inferred && wanted[axis] != 0) left_in_out.Append(wanted[axis]);
  }
  const int64_t elements = ProductOrUnknown(left_in_x, 0, left_in_x.rank());
  if (elements < 0) return -1;
  const int64_t divisor = left_in_out.element_count();
  SKIFF_ENFORCE(elements % divisor == 0, kInvalidArgument, context.op().type, ": X of shape ", x,
                " can't take shape ", wanted, ": ", elements, " is not a multiple of ", divisor);
  return elements / divisor;
}

void InferReshape(OpContext& context) {
  const std::string& op = context.op().type;
  const Shape& x = context.Input("X").shape;
  const std::vector<int64_t> dims = context.DimsAttr("shape");
  const Shape wanted{std::span<const int64_t>(dims)};
  Shape out = wanted;
  int inferred = -1;
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    SKIFF_ENFORCE(wanted[axis] >= -1, kInvalidArgument, op, ": shape = ", wanted, " has the dim ",
                  wanted[axis], ", expected -1, 0 or more");
    if (wanted[axis] == 0) {
      SKIFF_ENFORCE(axis < x.rank(), kInvalidArgument, op, ": shape = ", wanted, " copies dim ",
                    axis, " of X, which has shape ", x);
      out[axis] = x[axis];
    }
    // Where nothing is known, -1 says so, and there is nothing to infer.
    if (wanted[axis] != -1 || !context.Knows("shape")) continue;
    SKIFF_ENFORCE(inferred < 0, kInvalidArgument, op, ": shape = ", wanted,
                  " has more than one -1");
    inferred = axis;
  }
  if (inferred >= 0) out[inferred] = InferDim(x, wanted, inferred, context);
  if (x.is_known() && out.is_known()) {
    SKIFF_ENFORCE(x.element_count() == out.element_count(), kInvalidArgument, op, ": X of shape ",
                  x, " has ", x.element_count(), " elements, shape = ", wanted, " has ",
                  out.element_count());
  }
  SetReshapedOutput(context, out);
}

}  // namespace

void RegisterReshape2(OpRegistry& registry) {
  OpDef def;
  def.type = "reshape2";
  def.doc = "Out has the elements of X in the same order and the shape `shape`.";
  def.inputs = {{.name = "X", .doc = "Any tensor."},
                AttributeListSlot("ShapeTensor", "shape", /*for_shape=*/true),
                AttributeSlot("Shape", "shape", /*for_shape=*/true)};
  def.outputs = {{.name = "Out", .doc = "X in another shape."}, XShapeOutput()};
  def.attrs = {{.name = "shape",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = "The shape of Out; 0 copies a dim of X, and one -1 is inferred."}};
  def.infer = InferReshape;
  def.precision = Precision::kFollow;
  def.grad = ReshapeGradRule("reshape2_grad");
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "reshape2", CopyFactory("X", "Out"));
  AddReshapeGrad(registry, "reshape2_grad", "reshape2");
}

}  // namespace skiff
