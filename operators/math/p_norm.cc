// p_norm: the p-norm along an axis, or of all elements: Out = (sum of |X|^p)^(1/p). For p = 0 it is
// the number of elements that aren't 0, for p = inf (-inf) the largest (smallest) |X|.
//
// Gradient: dX = sign(X) · |X|^(p - 1) / (Out^(p - 1) + epsilon) · dOut; for p = ±inf dX = sign(X)
// · dOut where |X| equals Out; for p = 0 it is 0. It is 0 where X is 0.
//
// Source: Fluid's p_norm (PaddlePaddle 2.6).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/extreme_square.h"
#include "operators/math/kernels/p_norm_extents.h"
#include "operators/math/kernels/p_norm_slope.h"

namespace skiff {
namespace {

Shape OutputShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const bool as_vector = context.Attr<bool>("asvector");
  const int reduced = as_vector ? -1 : PNormAxis(context);
  Shape out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!as_vector && axis != reduced) {
      out.Append(x[axis]);
    } else if (context.Attr<bool>("keepdim")) {
      out.Append(1);
    }
  }
  return out;
}

void Infer(OpContext& context) {
  const Shape out = OutputShape(context);
  // If dim 0 stays, so do the rows, and Out takes over the LoD level.
  const bool keeps_rows = context.Input("X").shape.rank() > 1 && !context.Attr<bool>("asvector") &&
                          PNormAxis(context) != 0;
  if (keeps_rows) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, context.Input("X").dtype);
}

// Calls visit(offset, item) for the elements of a tile.
template <typename Visit>
void ForEachElement(const SoftmaxTile& tile, const Visit& visit) {
  for (int64_t c = 0; c < tile.classes; ++c) {
    for (int64_t item = 0; item < tile.items; ++item) {
      visit(tile.offset + item * tile.item_stride + c * tile.class_stride, item);
    }
  }
}

template <typename T>
T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

// Returns the p-norm of an item with powers that are out of range: that of the ratios to its
// largest element (its smallest, for p < 0), times this element, the `unit`.
template <typename T>
double NormOfRatios(const SoftmaxTile& tile, int64_t item, double order, const T* x, double unit) {
  if (unit == 0 || std::isinf(unit)) return unit;
  double total = 0;
  ForEachClass(tile, item, [&](int64_t at) {
    total += std::pow(std::abs(static_cast<double>(x[tile.offset + at])) / unit, order);
  });
  return unit * std::pow(total, 1 / order);
}

bool IsZero(const SoftmaxTile& tile, int64_t item, const float* x) {
  uint32_t bits = 0;
  ForEachClass(tile, item, [&](int64_t at) { bits |= std::bit_cast<uint32_t>(x[at]); });
  return bits << 1U == 0;
}

// Computes the norms of a tile's items for p = 2.
template <typename T>
void SquareNorms(const SoftmaxTile& tile, const T* x, T* norms) {
  TileDot(tile, x, x, norms);
  for (int64_t i = 0; i < tile.items; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      // Lines of zeros are common, and quicker to recognize than to sum up again.
      if (IsExtremeSquare(norms[i]) && (norms[i] != 0 || !IsZero(tile, i, x))) {
        norms[i] = static_cast<float>(std::sqrt(ItemDot(tile, i, x, x)));
        continue;
      }
    }
    norms[i] = std::sqrt(norms[i]);
  }
}

// Computes them for any p but 0, 1, 2 and infinities.
template <typename T>
void PowerNorms(const SoftmaxTile& tile, double order, const T* x, T* norms) {
  double totals[SoftmaxTile::kMaxItems] = {};
  // The largest element, or the smallest: beside the powers, they cost nothing.
  double units[SoftmaxTile::kMaxItems];
  std::fill_n(units, tile.items, order > 0 ? 0 : std::numeric_limits<double>::infinity());
  ForEachElement(tile, [&](int64_t at, int64_t i) {
    const double size = std::abs(static_cast<double>(x[at]));
    totals[i] += std::pow(size, order);
    units[i] = order > 0 ? std::max(units[i], size) : std::min(units[i], size);
  });
  for (int64_t i = 0; i < tile.items; ++i) {
    // Sums that aren't normal numbers have few digits.
    const bool is_lost = totals[i] < std::numeric_limits<double>::min() || std::isinf(totals[i]);
    norms[i] = static_cast<T>(is_lost ? NormOfRatios(tile, i, order, x, units[i])
                                      : std::pow(totals[i], 1 / order));
  }
}

// Computes the norms of a tile's items. Only p = 2 has a vector loop; the others sum in float64.
template <typename T>
void NormsOfTile(const SoftmaxTile& tile, double order, const T* x, T* norms) {
  if (order == 2) return SquareNorms(tile, x + tile.offset, norms);
  if (order != 0 && order != 1 && !std::isinf(order)) return PowerNorms(tile, order, x, norms);
  double totals[SoftmaxTile::kMaxItems];
  if (std::isinf(order)) {
    const bool largest = order > 0;
    std::fill_n(totals, tile.items, largest ? 0 : std::numeric_limits<double>::infinity());
    ForEachElement(tile, [&](int64_t at, int64_t i) {
      const double size = std::abs(static_cast<double>(x[at]));
      // A NaN replaces any extreme, and no number replaces a NaN.
      if ((largest ? size > totals[i] : size < totals[i]) || std::isnan(size)) totals[i] = size;
    });
  } else {
    std::fill_n(totals, tile.items, 0.0);
    const auto add = [&](const auto& term) {
      ForEachElement(tile, [&](int64_t at, int64_t i) {
        totals[i] += term(std::abs(static_cast<double>(x[at])));
      });
    };
    if (order == 1) {
      add([](double size) { return size; });
    } else {
      add([](double size) { return size != 0 ? 1.0 : 0.0; });
    }
  }
  for (int64_t i = 0; i < tile.items; ++i) norms[i] = static_cast<T>(totals[i]);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AxisExtents extents = PNormExtents(context);
  CheckPNormExtents(context, extents);
  const auto order = static_cast<double>(context.Attr<float>("porder"));
  const In<T> x_input(context, "X");
  const Out<T> output(context, "Out");
  return MakeKernel([=](const KernelContext& run) {
    const T* x = x_input(run);
    T* out = output(run);
    // A single norm is a single tile, so threads would have nothing to share; SumOfSquares cuts the
    // elements into parts.
    if (order == 2 && extents.lines() == 1) {
      *out = static_cast<T>(std::sqrt(SumOfSquares(x, extents.length)));
      return;
    }
    ForTiles(extents.outer, extents.length, extents.inner,
             [=](const SoftmaxTile& tile) { NormsOfTile(tile, order, x, out + tile.first_item); });
  });
}

template <typename T>
void GradientOfTile(const SoftmaxTile& tile, double order, double epsilon, const T* x,
                    const T* norms, const T* gradient, T* dx) {
  if (std::isinf(order)) {
    ForEachElement(tile, [&](int64_t at, int64_t i) {
      dx[at] = std::abs(x[at]) == norms[i] ? SignOf(x[at]) * gradient[i] : T{0};
    });
    return;
  }
  if (order != 0 && order != 1 && order != 2) {
    PNormSlope<double> slopes[SoftmaxTile::kMaxItems];
    for (int64_t i = 0; i < tile.items; ++i) {
      slopes[i] = {static_cast<double>(norms[i]), static_cast<double>(gradient[i]), order, epsilon};
    }
    ForEachElement(tile, [&](int64_t at, int64_t i) {
      dx[at] = static_cast<T>(slopes[i](static_cast<double>(x[at]), order));
    });
    return;
  }
  T factors[SoftmaxTile::kMaxItems];
  for (int64_t i = 0; i < tile.items; ++i) {
    const double divisor = std::pow(static_cast<double>(norms[i]), order - 1) + epsilon;
    factors[i] = order == 0 ? T{0} : static_cast<T>(static_cast<double>(gradient[i]) / divisor);
    // All elements are 0, and so are their gradients: nothing to divide.
    if (norms[i] == 0) factors[i] = 0;
  }
  if (order == 2) {
    TileScale(tile, x + tile.offset, factors, dx + tile.offset);
  } else {
    ForEachElement(tile, [&](int64_t at, int64_t i) { dx[at] = SignOf(x[at]) * factors[i]; });
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AxisExtents extents = PNormExtents(context);
  const auto order = static_cast<double>(context.Attr<float>("porder"));
  const auto epsilon = static_cast<double>(context.Attr<float>("epsilon"));
  const In<T> x(context, "X");
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeKernel([=](const KernelContext& run) {
    ForTiles(extents.outer, extents.length, extents.inner,
             [=, x = x(run), norms = out(run), gradient = gradient(run),
              dx = dx(run)](const SoftmaxTile& tile) {
               GradientOfTile(tile, order, epsilon, x, norms + tile.first_item,
                              gradient + tile.first_item, dx);
             });
  });
}

std::vector<AttrDef> Attributes() {
  const auto flag = [](StaticText name, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kBool, .default_value = Attribute(false), .doc = doc};
  };
  return {{.name = "porder",
           .type = AttrType::kFloat,
           .default_value = Attribute(2.0f),
           .doc = "p, any number or an infinity."},
          {.name = "axis",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "The axis; negative ones count from the back. Not read under asvector."},
          {.name = "epsilon",
           .type = AttrType::kFloat,
           .default_value = Attribute(1e-12f),
           .doc = "Keeps the gradient from dividing by 0."},
          flag("keepdim", "The axis stays as a dim of 1 (under asvector: all of them)."),
          flag("asvector", "The norm of all elements.")};
}

}  // namespace

void RegisterPNorm(OpRegistry& registry) {
  OpDef def = {.type = "p_norm",
               .doc = "Out = (sum of |X|^porder along `axis`)^(1/porder). Fluid's p_norm.",
               .inputs = {{.name = "X", .doc = "Of rank 1 or more (under asvector: of any)."}},
               .outputs = {{.name = "Out", .doc = "The norms."}},
               .attrs = Attributes(),
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Out", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The gradient of p_norm: dX = sign(X) * |X|^(p - 1) / (Out^(p - 1) + epsilon) * dOut.";
  grad.in_place = {{"X", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "p_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "p_norm_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
