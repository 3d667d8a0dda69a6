// unique: Out = the different elements of X, or with `axis` its different slices along that axis.
//
//   Out[k] = X[Indices[k]], the first place of its value;  X[i] = Out[Index[i]];
//   Counts[k] = the number of i with Index[i] == k
//
// Source: Fluid's unique. With `is_sorted`, Out is in ascending order (slices compare element by
// element), and X counts as flat if there is no `axis`. Without it, Out is in the order of first
// places, and X is a vector. Every connected output is computed, so the attributes return_… change
// nothing. NaN has no place in an order and is an Error.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// X as slices along the axis, or as single elements if there is no axis.
struct Slices {
  int axis = 0;
  Shape shape;  // of X, or of flat X
};

Slices SlicesOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const std::vector<int64_t> axes = context.IntsAttr("axis");
  SKIFF_ENFORCE(axes.size() <= 1, kInvalidArgument, "unique: axis = [", Join(axes, ", "),
                "], expected one axis or none");
  SKIFF_ENFORCE(context.Attr<bool>("is_sorted") || x.rank() == 1, kInvalidArgument,
                "unique: X has shape ", x, ", expected a vector unless is_sorted is set");
  if (!axes.empty()) return {NormalizeAxis(axes[0], x.rank(), "unique: axis"), x};
  return {0, x.is_known() ? Shape{x.element_count()} : Shape{-1}};
}

DType PlaceDType(const OpContext& context) {
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  SKIFF_ENFORCE(dtype == DType::kInt32 || dtype == DType::kInt64, kInvalidArgument,
                "unique: dtype is ", dtype, ", expected int32 or int64");
  return dtype;
}

void InferUnique(OpContext& context) {
  const Slices slices = SlicesOf(context);
  const int64_t count = slices.shape[slices.axis];
  const DType dtype = PlaceDType(context);
  SKIFF_ENFORCE(dtype == DType::kInt64 || count <= std::numeric_limits<int32_t>::max(), kOutOfRange,
                "unique: ", count, " places don't fit into int32, expected dtype int64");
  Shape out = slices.shape;
  out[slices.axis] = -1;
  context.SetOutput("Out", out, context.Input("X").dtype);
  context.SetOutput("Indices", {-1}, dtype);
  context.SetOutput("Index", {count}, dtype);
  context.SetOutput("Counts", {-1}, dtype);
}

// Returns -1, 0 or 1 if slice a is before, equal to or after slice b.
template <typename T>
int CompareSlices(const AxisExtents& axis, const T* x, int64_t a, int64_t b) {
  if (axis.inner == 0) return 0;  // slices without elements may have any number of parts
  for (int64_t outer = 0; outer < axis.outer; ++outer) {
    const T* row_a = x + (outer * axis.length + a) * axis.inner;
    const T* row_b = x + (outer * axis.length + b) * axis.inner;
    for (int64_t i = 0; i < axis.inner; ++i) {
      const auto of_a = static_cast<WideType<T>>(row_a[i]);
      const auto of_b = static_cast<WideType<T>>(row_b[i]);
      if (of_a != of_b) return of_a < of_b ? -1 : 1;
    }
  }
  return 0;
}

template <typename T>
void CheckIsOrdered(const T* x, int64_t count) {
  using Wide = WideType<T>;
  if constexpr (std::is_floating_point_v<Wide>) {
    const T* bad =
        std::find_if(x, x + count, [](T value) { return std::isnan(static_cast<Wide>(value)); });
    SKIFF_ENFORCE(bad == x + count, kInvalidArgument, "unique: element ", bad - x,
                  " of X is NaN, expected numbers");
  }
}

// The groups of equal slices. Each array has room for one number per slice.
struct Groups {
  int64_t* order;  // the slices, equal ones side by side
  int64_t* group;  // of each slice
  int64_t* first;  // slice of each group
  int64_t* size;   // of each group
  int64_t count = 0;
};

template <typename T>
void FindGroups(const AxisExtents& axis, const T* x, Groups* groups) {
  int64_t* order = groups->order;
  std::iota(order, order + axis.length, int64_t{0});
  std::sort(order, order + axis.length, [&](int64_t a, int64_t b) {
    // Equal slices stay in their order, so a group's first one is its first place in X.
    const int compared = CompareSlices(axis, x, a, b);
    return compared < 0 || (compared == 0 && a < b);
  });
  for (int64_t i = 0; i < axis.length; ++i) {
    if (i == 0 || CompareSlices(axis, x, order[i - 1], order[i]) != 0) {
      groups->first[groups->count] = order[i];
      groups->size[groups->count++] = 0;
    }
    groups->group[order[i]] = groups->count - 1;
    ++groups->size[groups->count - 1];
  }
}

// Numbers the groups by their first slices instead.
void OrderByFirstPlace(int64_t slices, Groups* groups) {
  int64_t* number = groups->order;  // of each group; the order isn't needed any more
  int64_t count = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t group = groups->group[i];
    if (groups->first[group] == i) number[group] = count++;
    groups->group[i] = number[group];
  }
  std::fill_n(groups->size, groups->count, int64_t{0});
  count = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t group = groups->group[i];
    if (groups->size[group]++ == 0) groups->first[count++] = i;
  }
}

void CopyPlaces(const int64_t* places, Tensor* out) {
  VisitDType<int32_t, int64_t>(out->dtype(), "unique: dtype", [&]<typename Place>(Place) {
    std::transform(places, places + out->element_count(), out->data<Place>(),
                   [](int64_t place) { return static_cast<Place>(place); });
  });
}

Tensor PlacesTensor(const int64_t* places, int64_t count, DType dtype) {
  Tensor tensor(Shape{count}, dtype);
  CopyPlaces(places, &tensor);
  return tensor;
}

// Returns the slices with the given numbers.
template <typename T>
Tensor SlicesTensor(const Slices& slices, const T* x, const int64_t* numbers, int64_t count) {
  Shape shape = slices.shape;
  shape[slices.axis] = count;
  Tensor tensor(shape, kDTypeOf<T>);
  const AxisExtents axis = ExtentsOfAxis(slices.shape, slices.axis);
  TakeRows(axis, x, numbers, count, sizeof(T), tensor.raw_data());
  return tensor;
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnique(PrepareContext& context) {
  const Slices slices = SlicesOf(context);
  const AxisExtents axis = ExtentsOfAxis(slices.shape, slices.axis);
  return MakeKernel([=, sorted = context.Attr<bool>("is_sorted"), dtype = PlaceDType(context),
                     scratch = context.RequestWorkspace(4 * axis.length * 8),
                     x = In<T>(context, "X"), out = Out<>(context, "Out"),
                     indices = Out<>(context, "Indices"), index = Out<>(context, "Index"),
                     counts = Out<>(context, "Counts")](const KernelContext& run) {
    const T* data = x(run);
    CheckIsOrdered(data, x.count(run));
    auto* room = static_cast<int64_t*>(run.workspace(scratch));
    Groups groups{.order = room,
                  .group = room + axis.length,
                  .first = room + 2 * axis.length,
                  .size = room + 3 * axis.length};
    FindGroups(axis, data, &groups);
    if (!sorted) OrderByFirstPlace(axis.length, &groups);
    out.tensor(run) = SlicesTensor(slices, data, groups.first, groups.count);
    if (indices.is_there()) indices.tensor(run) = PlacesTensor(groups.first, groups.count, dtype);
    CopyPlaces(groups.group, &index.tensor(run));
    if (counts.is_there()) counts.tensor(run) = PlacesTensor(groups.size, groups.count, dtype);
  });
}

std::vector<AttrDef> UniqueAttrs() {
  const auto flag = [](StaticText name, StaticText doc) {
    return AttrDef{.name = name, .type = AttrType::kBool, .default_value = false, .doc = doc};
  };
  return {flag("return_index", "Fluid computes Indices only if set; ignored."),
          flag("return_inverse", "Fluid computes Index of a sorted Out only if set; ignored."),
          flag("return_counts", "Fluid computes Counts only if set; ignored."),
          {.name = "axis",
           .type = AttrType::kInts,
           .default_value = std::vector<int32_t>{},
           .doc = "The axis whose slices are compared, negative from the back; none: elements."},
          {.name = "dtype",
           .type = AttrType::kInt,
           .default_value = int32_t{3},
           .doc = "Of Indices, Index and Counts: int32 or int64, as Fluid's enumerator."},
          flag("is_sorted", "Whether Out is in ascending order; else in that of first places.")};
}

}  // namespace

void RegisterUnique(OpRegistry& registry) {
  OpDef def;
  def.type = "unique";
  def.doc = "Out = the different elements of X, or its different slices along `axis`.";
  def.inputs = {
      {.name = "X", .doc = "A vector; any tensor if is_sorted is set.", .checks_data = true}};
  def.outputs = {
      {.name = "Out", .doc = "[n], or X with n slices along `axis`."},
      {.name = "Indices", .doc = "[n]: the first place in X of each.", .dispensable = true},
      {.name = "Index", .doc = "The place in Out of each element or slice of X."},
      {.name = "Counts", .doc = "[n]: how often each is in X.", .dispensable = true}};
  def.attrs = UniqueAttrs();
  def.infer = InferUnique;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "Fluid's unique has none";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "unique", []<typename T>(PrepareContext& context) { return PrepareUnique<T>(context); });
}

}  // namespace skiff
