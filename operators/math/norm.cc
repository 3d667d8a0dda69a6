// norm: each line along an axis divided by its length: Norm = sqrt(sum of X² + epsilon), Out = X /
// Norm.
// Source: Fluid's norm (the op of l2_normalize); dX = (dOut - Out * sum of (dOut * Out)) / Norm.
#include <cmath>
#include <memory>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/extreme_square.h"
#include "operators/common/input_checks.h"
#include "operators/common/softmax_tiles.h"

namespace skiff {
namespace {

int AxisOf(const OpContext& context) {
  return AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
}

Shape NormShape(const OpContext& context) {
  Shape shape = context.Input("X").shape;
  // A scalar is a line of one element.
  if (shape.rank() > 0) shape[AxisOf(context)] = 1;
  return shape;
}

void Infer(OpContext& context) {
  const Shape norm = NormShape(context);
  context.SetOutputLike("Out", "X");
  context.SetOutput("Norm", norm, context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Norm", NormShape(context), x.dtype);
  CheckInputLike(context, "Out@GRAD", x.shape, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int axis = AxisOf(context);
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int x_input = context.InputIndex("X");
  const int out_output = context.OutputIndex("Out");
  const int norm_output = context.OutputIndex("Norm");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(run.input(x_input).shape(), axis);
    const T* x = run.input(x_input).data<T>();
    T* out = run.output(out_output).data<T>();
    T* norms = norm_output < 0 ? nullptr : run.output(norm_output).data<T>();
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      double squares[SoftmaxTile::kMaxItems];
      T factors[SoftmaxTile::kMaxItems];
      TileSquares(tile, x + tile.offset, static_cast<double>(epsilon), squares);
      for (int64_t i = 0; i < tile.items; ++i) {
        const double sum = squares[i] + static_cast<double>(epsilon);
        const T norm = IsExtremeSquare(sum) ? static_cast<T>(std::sqrt(sum))
                                            : std::sqrt(static_cast<T>(squares[i]) + epsilon);
        if (norms != nullptr) norms[tile.first_item + i] = norm;
        factors[i] = 1 / norm;
      }
      TileScale(tile, x + tile.offset, factors, out + tile.offset);
    });
  });
}

// Computes the gradient of a tile in float64, whatever the size of the numbers. dx may be x or dy.
template <typename T>
void GradientInDoubles(const SoftmaxTile& tile, const T* x, const T* norms, const T* dy, T* dx) {
  for (int64_t i = 0; i < tile.items; ++i) {
    double product = 0;
    ForEachClass(tile, i, [&](int64_t at) {
      product += static_cast<double>(x[at]) * static_cast<double>(dy[at]);
    });
    const double inverse = 1 / static_cast<double>(norms[i]);
    const double x_factor = product * inverse * inverse * inverse;
    ForEachClass(tile, i, [&](int64_t at) {
      dx[at] = static_cast<T>(static_cast<double>(dy[at]) * inverse -
                              static_cast<double>(x[at]) * x_factor);
    });
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int axis = AxisOf(context);
  const int x_input = context.InputIndex("X");
  const int norm_input = context.InputIndex("Norm");
  const int gradient_input = context.InputIndex("Out@GRAD");
  const int dx_output = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(run.input(x_input).shape(), axis);
    const T* x = run.input(x_input).data<T>();
    const T* norms = run.input(norm_input).data<T>();
    const T* dy = run.input(gradient_input).data<T>();
    T* dx = run.output(dx_output).data<T>();
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      T inverses[SoftmaxTile::kMaxItems];
      T x_factors[SoftmaxTile::kMaxItems];
      TileDot(tile, x + tile.offset, dy + tile.offset, x_factors);
      bool is_extreme = false;
      for (int64_t i = 0; i < tile.items; ++i) {
        const auto norm = static_cast<double>(norms[tile.first_item + i]);
        is_extreme = is_extreme || IsExtremeSquare(norm * norm) || !std::isfinite(x_factors[i]);
        inverses[i] = 1 / norms[tile.first_item + i];
        // Out = X / Norm, so Out * sum (dOut * Out) / Norm is X * sum (dOut * X) / Norm³. It needs
        // no Out.
        x_factors[i] *= -inverses[i] * inverses[i] * inverses[i];
      }
      if (is_extreme) {
        return GradientInDoubles(tile, x + tile.offset, norms + tile.first_item, dy + tile.offset,
                                 dx + tile.offset);
      }
      TileMix(tile, dy + tile.offset, inverses, x + tile.offset, x_factors, dx + tile.offset);
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "axis",
           .type = AttrType::kInt,
           .doc = "The axis; negative ones count from the back."},
          {.name = "epsilon",
           .type = AttrType::kFloat,
           .default_value = Attribute(1e-10f),
           .doc = "Added to the sum of squares.",
           .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; },
           .expected = "at least 0"},
          {.name = "is_test",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Norm is not requested; leaving it out does the same."}};
}

}  // namespace

void RegisterNorm(OpRegistry& registry) {
  registry.Add({.type = "norm",
                .doc = "Norm = sqrt(sum of X^2 along `axis` + epsilon), Out = X / Norm. Fluid's "
                       "norm.",
                .inputs = {{.name = "X", .doc = "Of any shape."}},
                .outputs = {{.name = "Out", .doc = "Like X."},
                            {.name = "Norm",
                             .doc = "X's shape with 1 along the axis.",
                             .dispensable = true,
                             .intermediate = true}},
                .attrs = Attributes(),
                .infer = Infer,
                .grad = GradOp("norm_grad", {"X", "Norm", "Out@GRAD"}, {"X@GRAD"}),
                .in_place = {{"X", "Out"}}});
  registry.Add({.type = "norm_grad",
                .doc = "The gradient of norm: dX = (dOut - X * sum of (dOut * X) / Norm^2) / Norm.",
                .inputs = {{.name = "X", .doc = "Of norm."},
                           {.name = "Norm", .doc = "Of norm."},
                           {.name = "Out@GRAD", .doc = "The gradient of Out."}},
                .outputs = {{.name = "X@GRAD", .doc = "Like X."}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .in_place = {{"Out@GRAD", "X@GRAD"}, {"X", "X@GRAD"}}});
  registry.AddCpuKernels<float, double>(
      "norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "norm_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
