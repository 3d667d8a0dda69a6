// pad: Out = X with paddings[2k] elements of pad_value before and paddings[2k + 1] after axis k.
//
// Source: Fluid's pad. Gradient: X@GRAD is Out@GRAD without the border.
#include "framework/base/error.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/padding.h"

namespace skiff {
namespace {

Borders BordersOf(const OpContext& context, const Shape& shape) {
  const Borders borders = context.IntsAttr("paddings");
  SKIFF_ENFORCE(borders.size() == 2 * static_cast<size_t>(shape.rank()), kInvalidArgument,
                context.op().type, ": paddings = [", Join(borders, ", "),
                "] for a tensor of shape ", shape, ", expected two numbers per dim");
  for (const int64_t border : borders) {
    SKIFF_ENFORCE(border >= 0, kOutOfRange, context.op().type, ": paddings = [",
                  Join(borders, ", "), "] has a negative number");
  }
  CheckBorderWidths(borders, context.op().type);
  return borders;
}

template <typename T>
std::unique_ptr<Kernel> PreparePad(PrepareContext& context) {
  const Shape& x = context.Input("X").shape;
  return MakeKernel([pad = ConstantPad(x, BordersOf(context, x)),
                     value = static_cast<T>(context.Attr<float>("pad_value")),
                     from = In<T>(context, "X"), to = Out<T>(context, "Out")](
                        const KernelContext& run) { pad.Run(from(run), value, to(run)); });
}

std::unique_ptr<Kernel> PreparePadGrad(PrepareContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  const Borders borders = BordersOf(context, grad.shape);
  return MakeKernel(
      [unpad = Unpad(UnpaddedShape(grad.shape, borders, "pad_grad"), borders, grad.dtype),
       from = In<>(context, "Out@GRAD"), to = Out<>(context, "X@GRAD")](const KernelContext& run) {
        unpad.Run(run, from(run), to(run));
      });
}

}  // namespace

void RegisterPad(OpRegistry& registry) {
  OpDef def;
  def.type = "pad";
  def.doc = "Out = X with a border of pad_value.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "X and its border."}};
  def.attrs = {
      {.name = "paddings",
       .type = AttrType::kInts,
       .doc = "The numbers of elements before and after axis 0, before and after axis 1, …"},
      {.name = "pad_value",
       .type = AttrType::kFloat,
       .default_value = 0.0f,
       .doc = "The value of the border."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    const Borders borders = BordersOf(context, x.shape);
    CheckPadValue(context, "pad_value", x.dtype);
    context.SetOutput("Out", PaddedShape(x.shape, borders), x.dtype);
    SetLodLevel(context, !borders.empty() && borders[0] == 0 && borders[1] == 0);
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD without the border.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& out_grad = context.Input("Out@GRAD");
    const Borders borders = BordersOf(context, out_grad.shape);
    context.SetOutput("X@GRAD", UnpaddedShape(out_grad.shape, borders, "pad_grad"), out_grad.dtype);
  };
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, BFloat16, Float16, int32_t, int64_t>(
      "pad", []<typename T>(PrepareContext& context) { return PreparePad<T>(context); });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "pad_grad", PreparePadGrad);
}

}  // namespace skiff
