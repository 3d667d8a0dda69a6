// softmax: y_c = exp(x_c - max x) / sum_j exp(x_j - max x) along `axis`.
// Source: Fluid's softmax (Bridle 1990); dX = (dOut - sum_c dOut_c * y_c) * y.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/input_checks.h"
#include "operators/common/softmax_tiles.h"

namespace skiff {
namespace {

AxisExtents ExtentsOf(const OpContext& context, const Shape& shape) {
  return ExtentsOfAxis(shape, AxisIndex(context, shape, context.IntAttr("axis")));
}

void Infer(OpContext& context) {
  AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  context.SetOutputLike("Out", "X");
}

void InferGrad(OpContext& context) {
  const TensorMeta& out = context.Input("Out");
  AxisIndex(context, out.shape, context.IntAttr("axis"));
  CheckInputLike(context, "Out@GRAD", out.shape, out.dtype);
  context.SetOutputLike("X@GRAD", "Out");
}

template <typename T>
void SoftmaxOfTile(const SoftmaxTile& tile, const T* x, T* y) {
  T max[SoftmaxTile::kMaxItems];
  T sum[SoftmaxTile::kMaxItems];
  TileMax(tile, x, max);
  TileExp(tile, x, max, y, sum);
  for (int64_t i = 0; i < tile.items; ++i) sum[i] = 1 / sum[i];
  TileScale(tile, y, sum, y);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  const AxisExtents extents = ExtentsOf(context, context.Input("X").shape);
  return MakeKernel([=](const KernelContext& run) {
    const T* from = run.input(x).data<T>();
    T* to = run.output(out).data<T>();
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      SoftmaxOfTile(tile, from + tile.offset, to + tile.offset);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int out = context.InputIndex("Out");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const AxisExtents extents = ExtentsOf(context, context.Input("Out").shape);
  return MakeKernel([=](const KernelContext& run) {
    const T* y = run.input(out).data<T>();
    const T* dy = run.input(gradient).data<T>();
    T* to = run.output(dx).data<T>();
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      T dot[SoftmaxTile::kMaxItems];
      TileDot(tile, y + tile.offset, dy + tile.offset, dot);
      TileSoftmaxGrad(tile, y + tile.offset, dy + tile.offset, dot, to + tile.offset);
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "axis",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "The axis of the classes; negative ones count from the back."}};
}

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  registry.Add(
      {.type = "softmax",
       .doc = "Out = exp(X - max X) / sum of exp(X - max X) along `axis`. Fluid's softmax.",
       .inputs = {{.name = "X", .doc = "Logits, of any rank; a scalar is one class."}},
       .outputs = {{.name = "Out", .doc = "Probabilities, of X's shape."}},
       .attrs = Attributes(),
       .infer = Infer,
       .grad = GradOp("softmax_grad", {"Out", "Out@GRAD"}, {"X@GRAD"}),
       .in_place = {{"X", "Out"}}});
  registry.Add({.type = "softmax_grad",
                .doc = "The gradient of softmax: dX = (dOut - sum of dOut * Out along `axis`) * "
                       "Out.",
                .inputs = {{.name = "Out", .doc = "The output of softmax."},
                           {.name = "Out@GRAD", .doc = "Its gradient."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of Out's shape."}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .in_place = {{"Out@GRAD", "X@GRAD"}, {"Out", "X@GRAD"}}});
  registry.AddCpuKernels<float, double>(
      "softmax", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "softmax_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
