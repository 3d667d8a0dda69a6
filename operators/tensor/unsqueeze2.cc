// unsqueeze2: Out = X with axes of extent 1 inserted.
//
// Source: Fluid's unsqueeze2. The axes are inserted one after the other. Each is counted in the
// shape with the axes inserted so far; a negative one counts from the end of the shape that it
// results in.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

Shape Insert(const Shape& shape, int axis) {
  Shape wider(shape.dims().first(static_cast<size_t>(axis)));
  wider.Append(1);
  for (int i = axis; i < shape.rank(); ++i) wider.Append(shape[i]);
  return wider;
}

void InferUnsqueeze(OpContext& context) {
  Shape out = context.Input("X").shape;
  if (!context.Knows("axes")) {
    const auto count = static_cast<int64_t>(context.DimsAttr("axes").size());
    return SetReshapedOutput(context, UnknownDims(out.rank() + count));
  }
  for (const int64_t given : context.IntsAttr("axes")) {
    out = Insert(out, NormalizeAxis(given, out.rank() + 1, "unsqueeze2: axes"));
  }
  SetReshapedOutput(context, out);
}

}  // namespace

void RegisterUnsqueeze2(OpRegistry& registry) {
  OpDef def;
  def.type = "unsqueeze2";
  def.doc = "Out has the elements of X with an axis of extent 1 inserted at each of `axes`.";
  def.inputs = {{.name = "X", .doc = "Any tensor."},
                AttributeListSlot("AxesTensorList", "axes", /*for_shape=*/true),
                AttributeSlot("AxesTensor", "axes", /*for_shape=*/true)};
  def.outputs = {{.name = "Out", .doc = "X with more axes."}, XShapeOutput()};
  def.attrs = {{.name = "axes",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = "The positions at which axes are inserted, one after the other."}};
  def.infer = InferUnsqueeze;
  def.precision = Precision::kFollow;
  def.grad = ReshapeGradRule("unsqueeze2_grad");
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "unsqueeze2", CopyFactory("X", "Out"));
  const auto unused = [](StaticText name, bool duplicable) {
    return SlotDef{.name = name,
                   .doc = "Of unsqueeze2; unused.",
                   .duplicable = duplicable,
                   .dispensable = true,
                   .shape_only = true};
  };
  AddReshapeGrad(registry, "unsqueeze2_grad", "unsqueeze2",
                 {unused("AxesTensor", false), unused("AxesTensorList", true)});
}

}  // namespace skiff
