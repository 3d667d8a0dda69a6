// Two loops, as in reductions: along a contiguous row, the extreme of a block is found by vectors
// before the block is searched for it; along another axis, neighbouring columns are searched side
// by side.
#include "operators/math/kernels/arg_extreme.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cpu/array_reduction.h"

namespace skiff {
namespace {

// The number of elements of a row whose extreme is computed before one searches for it.
constexpr int64_t kBlock = 1024;
// The number of columns that are searched side by side.
constexpr int64_t kColumns = 64;

// Returns the axis. Under flatten, it is that of the vector of all elements.
int AxisOf(const OpContext& context) {
  if (context.Attr<bool>("flatten")) return 0;
  return AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
}

AxisExtents ExtentsOf(const Shape& x, bool flattens, int axis) {
  if (flattens) return {.length = x.element_count()};
  return ExtentsOfAxis(x, axis);
}

Shape OutputShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const bool keeps = context.Attr<bool>("keepdims");
  const bool flattens = context.Attr<bool>("flatten");
  const int reduced = AxisOf(context);
  Shape out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!flattens && axis != reduced) {
      out.Append(x[axis]);
    } else if (keeps) {
      out.Append(1);
    }
  }
  return out;
}

DType OutputDType(const OpContext& context) {
  const int64_t dtype = context.IntAttr("dtype");
  const bool is_int32 = dtype == static_cast<int64_t>(DType::kInt32);
  SKIFF_ENFORCE(is_int32 || dtype == static_cast<int64_t>(DType::kInt64) || dtype == -1,
                kInvalidArgument, context.op().type, ": dtype = ", dtype, ", expected ",
                static_cast<int32_t>(DType::kInt32), " (int32) or ",
                static_cast<int32_t>(DType::kInt64), " (int64)");
  return is_int32 ? DType::kInt32 : DType::kInt64;
}

void Infer(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const Shape out = OutputShape(context);
  const bool keeps_rows = x.rank() > 1 && AxisOf(context) != 0;
  if (keeps_rows) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, OutputDType(context));
}

template <bool kIsMax, typename T>
bool IsBetter(T value, T best) {
  return kIsMax ? value > best : value < best;
}

template <typename T>
bool IsNan(T value) {
  return value != value;
}

// Computes the extreme of each block with vectors, and then searches only the best block for it.
template <bool kIsMax, typename T>
int64_t PlaceInRow(const T* x, int64_t length) {
  int64_t best_block = 0;
  T best{};
  for (int64_t first = 0; first < length; first += kBlock) {
    const int64_t size = std::min(kBlock, length - first);
    const T value = kIsMax ? Largest(x + first, size) : Smallest(x + first, size);
    if (first == 0 || IsBetter<kIsMax>(value, best) || IsNan(value)) {
      best = value;
      best_block = first;
    }
    // The first NaN wins, so later blocks can't change the result.
    if (IsNan(value)) break;
  }
  const T* begin = x + best_block;
  const T* end = x + std::min(best_block + kBlock, length);
  const T* place = IsNan(best) ? std::find_if(begin, end, IsNan<T>) : std::find(begin, end, best);
  return place - x;
}

// Finds the extremes of neighbouring columns without branches, so that the loop over columns is
// vectorized. Places are int32 for that: with 64 bits, a vector would hold half as many.
template <bool kIsMax, typename T, typename Place>
void PlacesInColumns(const T* x, int64_t length, int64_t stride, int64_t columns, Place* out) {
  std::array<T, kColumns> best;
  std::array<int32_t, kColumns> places{};
  std::copy_n(x, columns, best.begin());
  for (int64_t row = 1; row < length; ++row) {
    const T* values = x + row * stride;
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<size_t>(j);
      const bool is_open = !IsNan(best[at]);
      // & and | instead of && and ||, which would branch.
      const bool wins = is_open & (IsBetter<kIsMax>(values[j], best[at]) | IsNan(values[j]));
      best[at] = wins ? values[j] : best[at];
      places[at] = wins ? static_cast<int32_t>(row) : places[at];
    }
  }
  for (int64_t j = 0; j < columns; ++j) out[j] = static_cast<Place>(places[static_cast<size_t>(j)]);
}

template <bool kIsMax, typename T, typename Place>
void FindPlaces(const AxisExtents& extents, const T* x, Place* out) {
  if (extents.inner == 1) {
    ParallelFor(extents.outer, extents.grain(), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        out[row] = static_cast<Place>(PlaceInRow<kIsMax>(x + row * extents.length, extents.length));
      }
    });
    return;
  }
  const int64_t tiles = (extents.inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(
      1, extents.grain() / std::min(kColumns, std::max<int64_t>(1, extents.inner)));
  ParallelFor(extents.outer * tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % tiles * kColumns;
      const int64_t columns = std::min(kColumns, extents.inner - column);
      PlacesInColumns<kIsMax>(x + i / tiles * extents.length * extents.inner + column,
                              extents.length, extents.inner, columns,
                              out + i / tiles * extents.inner + column);
    }
  });
}

void CheckNotEmpty(std::string_view type, const Shape& x, const AxisExtents& extents) {
  SKIFF_ENFORCE(extents.length > 0 || extents.lines() == 0, kInvalidArgument, type, ": X of shape ",
                x, " has no elements along the axis, expected at least one");
}

template <bool kIsMax, typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const bool flattens = context.Attr<bool>("flatten");
  const int axis = AxisOf(context);
  const AxisExtents extents = ExtentsOf(context.Input("X").shape, flattens, axis);
  CheckNotEmpty(context.op().type, context.Input("X").shape, extents);
  const DType place_type = OutputDType(context);
  // Along a row, places are counted in 64 bits; along columns, in 32.
  const bool fits = extents.length <= std::numeric_limits<int32_t>::max() ||
                    (extents.inner == 1 && place_type == DType::kInt64);
  SKIFF_ENFORCE(fits, kOutOfRange, context.op().type, ": ", extents.length,
                " elements along the axis, more than int32 can count");
  const In<T> x(context, "X");
  const Out<> out(context, "Out");
  return MakeRowsKernel([=, type = context.def().type](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    const AxisExtents extents_of_run = ExtentsOf(shape, flattens, axis);
    CheckNotEmpty(type, shape, extents_of_run);
    const T* from = x(run);
    if (place_type == DType::kInt32) {
      FindPlaces<kIsMax>(extents_of_run, from, out.tensor(run).data<int32_t>());
    } else {
      FindPlaces<kIsMax>(extents_of_run, from, out.tensor(run).data<int64_t>());
    }
  });
}

}  // namespace

void RegisterArgExtreme(OpRegistry& registry, StaticText type, bool is_max) {
  const std::string which = is_max ? "largest" : "smallest";
  OpDef def;
  def.type = type;
  def.doc =
      StrCat("Out = the place of the ", which, " element of X along `axis`. Fluid's ", type, ".");
  def.inputs = {{.name = "X", .doc = "Of any shape."}};
  def.outputs = {{.name = "Out", .doc = "Places, counted from 0."}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kLong,
                .doc = "The axis; negative ones count from the back. Not read under flatten."},
               {.name = "keepdims",
                .type = AttrType::kBool,
                .default_value = Attribute(false),
                .doc = "The axis stays as a dim of 1 (under flatten: all of them)."},
               {.name = "flatten",
                .type = AttrType::kBool,
                .default_value = Attribute(false),
                .doc = "The place among all elements, in row-major order."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .default_value = Attribute(static_cast<int32_t>(DType::kInt64)),
                .doc = "Of Out: int64 (also as -1) or int32."}};
  def.infer = Infer;
  // The only float input is taken as it is.
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "places are integers";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      type, [is_max]<typename T>(PrepareContext& context) {
        return is_max ? Prepare<true, T>(context) : Prepare<false, T>(context);
      });
}

}  // namespace skiff
