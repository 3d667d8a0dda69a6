// norm: each line along an axis divided by its length: Norm = sqrt(sum of X² + epsilon), Out = X /
// Norm.
// Source: Fluid's norm (the op of l2_normalize); dX = (dOut - Out * sum of (dOut * Out)) / Norm.
#include <cmath>
#include <memory>
#include <type_traits>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/extreme_square.h"
#include "operators/common/input_checks.h"

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

// Whether T may be too narrow for an item with this sum of squares. In float64 there is nothing
// wider.
template <typename T>
bool IsExtreme(T squares) {
  return std::is_same_v<T, float> && IsExtremeSquare(squares);
}

// Returns the norm of an item in float64.
template <typename T>
double ExactNorm(const SoftmaxTile& tile, int64_t item, const T* x, T epsilon) {
  return std::sqrt(ItemDot(tile, item, x, x) + static_cast<double>(epsilon));
}

// Normalizes a tile item by item, the extreme ones in float64. `squares` has their sums of squares
// in T. out may be x; norms may be nullptr.
template <typename T>
[[gnu::noinline]] void NormalizeItems(const SoftmaxTile& tile, const T* x, const T* squares,
                                      T epsilon, T* out, T* norms) {
  for (int64_t i = 0; i < tile.items; ++i) {
    T norm = std::sqrt(squares[i] + epsilon);
    if (IsExtreme(squares[i] + epsilon)) {
      const double exact = ExactNorm(tile, i, x, epsilon);
      norm = static_cast<T>(exact);
      ForEachClass(tile, i, [&](int64_t at) {
        out[at] = static_cast<T>(static_cast<double>(x[at]) / exact);
      });
    } else {
      const T factor = 1 / norm;
      const int64_t at = i * tile.item_stride;
      TileScale(TileOfItem(tile, i), x + at, &factor, out + at);
    }
    if (norms != nullptr) norms[i] = norm;
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int axis = AxisOf(context);
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<T> norms(context, "Norm");
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto normalize = [=, x = x(run), out = out(run),
                            norms = norms(run)](const SoftmaxTile& tile) {
      T factors[SoftmaxTile::kMaxItems];
      TileDot(tile, x + tile.offset, x + tile.offset, factors);
      bool is_extreme = false;
      for (int64_t i = 0; i < tile.items; ++i) is_extreme |= IsExtreme(factors[i] + epsilon);
      if (is_extreme) [[unlikely]] {
        return NormalizeItems(tile, x + tile.offset, factors, epsilon, out + tile.offset,
                              norms == nullptr ? nullptr : norms + tile.first_item);
      }
      for (int64_t i = 0; i < tile.items; ++i) {
        const T norm = std::sqrt(factors[i] + epsilon);
        if (norms != nullptr) norms[tile.first_item + i] = norm;
        factors[i] = 1 / norm;
      }
      TileScale(tile, x + tile.offset, factors, out + tile.offset);
    };
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    ForTiles(extents.outer, extents.length, extents.inner, normalize);
  });
}

// Whether the gradient of an item must be computed in float64. `product`: the sum of x * dy in T.
template <typename T>
bool IsExtremeGradient(T norm, T product) {
  // The difference of infinities, and that of NaN, isn't 0.
  return IsExtreme(norm * norm) || (std::is_same_v<T, float> && product - product != T{0});
}

// Computes the gradients of a tile item by item, the extreme ones in float64. `products` has their
// sums of x * dy in T. dx may be x or dy.
template <typename T>
[[gnu::noinline]] void DifferentiateItems(const SoftmaxTile& tile, const T* x, const T* norms,
                                          const T* products, const T* dy, T epsilon, T* dx) {
  for (int64_t i = 0; i < tile.items; ++i) {
    if (IsExtremeGradient(norms[i], products[i])) {
      // Float32 holds no norm of many numbers near its bounds.
      const double norm =
          std::isnormal(norms[i]) ? static_cast<double>(norms[i]) : ExactNorm(tile, i, x, epsilon);
      const double inverse = 1 / norm;
      const double x_factor = ItemDot(tile, i, x, dy) * inverse * inverse * inverse;
      ForEachClass(tile, i, [&](int64_t at) {
        dx[at] = static_cast<T>(static_cast<double>(dy[at]) * inverse -
                                static_cast<double>(x[at]) * x_factor);
      });
    } else {
      const T inverse = 1 / norms[i];
      const T x_factor = products[i] * (-inverse * inverse * inverse);
      const int64_t at = i * tile.item_stride;
      TileMix(TileOfItem(tile, i), dy + at, &inverse, x + at, &x_factor, dx + at);
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int axis = AxisOf(context);
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> x(context, "X");
  const In<T> norms(context, "Norm");
  const In<T> dy(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto differentiate = [=, x = x(run), norms = norms(run), dy = dy(run),
                                dx = dx(run)](const SoftmaxTile& tile) {
      const T* of_tile = norms + tile.first_item;
      T inverses[SoftmaxTile::kMaxItems];
      T x_factors[SoftmaxTile::kMaxItems];
      TileDot(tile, x + tile.offset, dy + tile.offset, x_factors);
      bool is_extreme = false;
      for (int64_t i = 0; i < tile.items; ++i) {
        is_extreme |= IsExtremeGradient(of_tile[i], x_factors[i]);
      }
      if (is_extreme) [[unlikely]] {
        return DifferentiateItems(tile, x + tile.offset, of_tile, x_factors, dy + tile.offset,
                                  epsilon, dx + tile.offset);
      }
      for (int64_t i = 0; i < tile.items; ++i) {
        inverses[i] = 1 / of_tile[i];
        // Out = X / Norm, so Out * sum (dOut * Out) / Norm is X * sum (dOut * X) / Norm³. It needs
        // no Out.
        x_factors[i] *= -inverses[i] * inverses[i] * inverses[i];
      }
      TileMix(tile, dy + tile.offset, inverses, x + tile.offset, x_factors, dx + tile.offset);
    };
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    ForTiles(extents.outer, extents.length, extents.inner, differentiate);
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
  OpDef def = {.type = "norm",
               .doc =
                   "Norm = sqrt(sum of X^2 along `axis` + epsilon), Out = X / Norm. Fluid's "
                   "norm.",
               .inputs = {{.name = "X", .doc = "Of any shape."}},
               .outputs = {{.name = "Out", .doc = "Like X."},
                           {.name = "Norm",
                            .doc = "X's shape with 1 along the axis.",
                            .dispensable = true,
                            .intermediate = true,
                            .keeps_float32 = true}},
               .attrs = Attributes(),
               .infer = Infer,
               .in_place = {{"X", "Out"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Norm", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The gradient of norm: dX = (dOut - X * sum of (dOut * X) / Norm^2) / Norm.";
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}, {"X", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "norm_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
