// flatten2: Out = X as a matrix, whose rows are the axes before `axis`.
//
// Source: Fluid's flatten2.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferFlatten(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t given = context.IntAttr("axis");
  // `axis` may be the rank: then all of X is one column.
  const int64_t axis = given < 0 ? given + x.rank() : given;
  SKIFF_ENFORCE(axis >= 0 && axis <= x.rank(), kOutOfRange, "flatten2: axis = ", given,
                " is outside [", -x.rank(), ", ", x.rank(), "] for X of shape ", x);
  const int split = static_cast<int>(axis);
  SetReshapedOutput(context, {ProductOrUnknown(x, 0, split), ProductOrUnknown(x, split, x.rank())});
}

}  // namespace

void RegisterFlatten2(OpRegistry& registry) {
  OpDef def;
  def.type = "flatten2";
  def.doc = "Out has the elements of X and the shape [prod(X dims before axis), prod(the rest)].";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "X as a matrix."}, XShapeOutput()};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "The first axis that belongs to the columns."}};
  def.infer = InferFlatten;
  def.precision = Precision::kFollow;
  def.grad = ReshapeGradRule("flatten2_grad");
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "flatten2", CopyFactory("X", "Out"));
  AddReshapeGrad(registry, "flatten2_grad", "flatten2");
}

}  // namespace skiff
