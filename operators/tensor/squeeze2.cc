// squeeze2: Out = X without axes of extent 1.
//
// Source: Fluid's squeeze2. `axes` names the axes to drop. One whose extent isn't 1 stays, and an
// unknown extent counts as 1. Without `axes`, every axis of extent 1 is dropped. Skiff adds
// `strict`.
#include <algorithm>

#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferSqueeze(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const std::vector<int64_t> axes = context.IntsAttr("axes");
  const bool strict = context.Attr<bool>("strict");
  std::array<bool, Shape::kMaxRank> drop{};
  for (const int64_t given : axes) {
    const int axis = NormalizeAxis(given, x.rank(), "squeeze2: axes");
    drop[axis] = x[axis] == 1 || x[axis] < 0;
    SKIFF_ENFORCE(drop[axis] || !strict, kInvalidArgument, "squeeze2: axis ", axis,
                  " of X of shape ", x, " has the extent ", x[axis], ", expected 1");
  }
  Shape out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axes.empty() ? x[axis] != 1 : !drop[axis]) out.Append(x[axis]);
  }
  SetReshapedOutput(context, out);
}

}  // namespace

void RegisterSqueeze2(OpRegistry& registry) {
  OpDef def;
  def.type = "squeeze2";
  def.doc = "Out has the elements of X without the axes of extent 1 (those among `axes`, if any).";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "X with fewer axes."}, XShapeOutput()};
  def.attrs = {{.name = "axes",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = "The axes to drop, negative from the back; empty: all of extent 1."},
               {.name = "strict",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Whether an axis of `axes` whose extent isn't 1 is an Error."}};
  def.infer = InferSqueeze;
  def.precision = Precision::kFollow;
  def.grad = ReshapeGradRule("squeeze2_grad");
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "squeeze2", CopyFactory("X", "Out"));
  AddReshapeGrad(registry, "squeeze2_grad", "squeeze2");
}

}  // namespace skiff
