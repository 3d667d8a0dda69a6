// log_softmax: y_c = x_c - max x - log(sum_j exp(x_j - max x)) along `axis`.
// Source: Fluid's log_softmax; dX = dOut - exp(y) * sum_c dOut_c.
#include <cmath>

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
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  const AxisExtents extents = ExtentsOf(context, context.Input("X").shape);
  return MakeKernel([=](const KernelContext& run) {
    const T* from = run.input(x).data<T>();
    T* to = run.output(out).data<T>();
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      T max[SoftmaxTile::kMaxItems];
      T sum[SoftmaxTile::kMaxItems];
      TileMax(tile, from + tile.offset, max);
      TileExp(tile, from + tile.offset, max, static_cast<T*>(nullptr), sum);
      for (int64_t i = 0; i < tile.items; ++i) sum[i] = std::log(sum[i]);
      TileSubtract(tile, from + tile.offset, max, sum, to + tile.offset);
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
      T sum[SoftmaxTile::kMaxItems];
      TileSum(tile, dy + tile.offset, sum);
      TileLogSoftmaxGrad(tile, y + tile.offset, dy + tile.offset, sum, to + tile.offset);
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

void RegisterLogSoftmax(OpRegistry& registry) {
  registry.Add({.type = "log_softmax",
                .doc = "Out = X - max X - log(sum of exp(X - max X)) along `axis`. Fluid's "
                       "log_softmax.",
                .inputs = {{.name = "X", .doc = "Logits, of any shape."}},
                .outputs = {{.name = "Out", .doc = "Logarithms of probabilities, of X's shape."}},
                .attrs = Attributes(),
                .infer = Infer,
                .grad = GradOp("log_softmax_grad", {"Out", "Out@GRAD"}, {"X@GRAD"}),
                .in_place = {{"X", "Out"}}});
  registry.Add({.type = "log_softmax_grad",
                .doc = "The gradient of log_softmax: dX = dOut - exp(Out) * sum of dOut along "
                       "`axis`.",
                .inputs = {{.name = "Out", .doc = "The output of log_softmax."},
                           {.name = "Out@GRAD", .doc = "Its gradient."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of Out's shape."}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .in_place = {{"Out@GRAD", "X@GRAD"}, {"Out", "X@GRAD"}}});
  registry.AddCpuKernels<float, double>(
      "log_softmax", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "log_softmax_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
