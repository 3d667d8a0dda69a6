#include "operators/math/kernels/largest_elements.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/math/kernels/element_order.h"

namespace skiff {
namespace {

// The attributes that only top_k_v2 has. top_k has these defaults.
struct Selection {
  int axis = 0;
  bool largest = true;
};

Selection SelectionOf(const OpContext& context) {
  const bool is_v2 = context.def().FindAttr("axis") != nullptr;
  return {.axis = AxisIndex(context, context.Input("X").shape,
                            is_v2 ? context.IntAttr("axis") : int64_t{-1}),
          .largest = !is_v2 || context.Attr<bool>("largest")};
}

void CheckK(std::string_view type, int64_t k, const Shape& x, int axis) {
  const int64_t length = x.rank() == 0 ? 1 : x[axis];
  SKIFF_ENFORCE(k >= 1 && (length < 0 || k <= length), kInvalidArgument, type, ": k = ", k,
                " is outside [1, ", length, "] for X of shape ", x, " along axis ", axis);
}

Shape OutputShape(const Shape& x, int axis, int64_t k) {
  Shape out = x;
  if (x.rank() > 0) out[axis] = k;
  return out;
}

void Infer(OpContext& context) {
  const std::string& type = context.op().type;
  const Shape& x = context.Input("X").shape;
  const int axis = SelectionOf(context).axis;
  // A tensor K is unknown until the run, and so is the outputs' dim.
  int64_t k = -1;
  if (context.HasInput("K")) {
    const DType dtype = context.Input("K").dtype;
    SKIFF_ENFORCE(dtype == DType::kInt32 || dtype == DType::kInt64, kInvalidArgument, type,
                  ": K is ", dtype, ", expected int32 or int64");
    CheckOneElement(context, "K");
  } else {
    k = context.IntAttr("k");
    CheckK(type, k, x, axis);
  }
  const Shape out = OutputShape(x, axis, k);
  if (axis != 0 || x.rank() == 1) {
    context.SetOutputLike("Out", "X");
    context.SetOutputLike("Indices", "X");
  }
  context.SetOutput("Out", out, context.Input("X").dtype);
  context.SetOutput("Indices", out, DType::kInt64);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const int axis = SelectionOf(context).axis;
  // Indices has the k of the forward op. The attribute doesn't count if K was given.
  const Shape& indices = context.Input("Indices").shape;
  CheckInputLike(context, "Indices", OutputShape(x.shape, axis, -1), DType::kInt64);
  if (indices.rank() > 0 && indices[axis] >= 0) {
    CheckK(context.op().type, indices[axis], x.shape, axis);
  }
  CheckInputLike(context, "Out@GRAD", indices, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
void Select(bool largest, const AxisExtents& extents, int64_t k, const T* x, T* values,
            int64_t* indices) {
  if (largest) {
    SelectLines<true>(extents, k, x, values, indices);
  } else {
    SelectLines<false>(extents, k, x, values, indices);
  }
}

// If K is a tensor, a run finds the shape of the outputs. Each run makes new tensors, so that a
// result of an earlier run stays as it is.
template <typename T>
std::unique_ptr<Kernel> PrepareDynamic(const PrepareContext& context) {
  const Selection selection = SelectionOf(context);
  const In<T> x(context, "X");
  const In<> k_input(context, "K");
  const Out<> out(context, "Out");
  const Out<> indices(context, "Indices");
  return MakeRowsKernel([=, type = context.op().type](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    const AxisExtents extents = ExtentsOfAxis(shape, selection.axis);
    const Tensor& wanted = k_input.tensor(run);
    const int64_t k = wanted.dtype() == DType::kInt32 ? int64_t{*wanted.data<int32_t>()}
                                                      : *wanted.data<int64_t>();
    CheckK(type, k, shape, selection.axis);
    const Shape selected = OutputShape(shape, selection.axis, k);
    Tensor values(selected, kDTypeOf<T>);
    Tensor places(selected, DType::kInt64);
    Select(selection.largest, extents, k, x(run), values.data<T>(), places.data<int64_t>());
    if (out.is_there()) out.tensor(run) = values;
    if (indices.is_there()) indices.tensor(run) = places;
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  if (context.HasInput("K")) return PrepareDynamic<T>(context);
  const Selection selection = SelectionOf(context);
  const AxisExtents extents = ExtentsOfAxis(context.Input("X").shape, selection.axis);
  const int64_t k = context.IntAttr("k");
  CheckK(context.op().type, k, context.Input("X").shape, selection.axis);
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<int64_t> indices(context, "Indices");
  const int64_t count = MultiplyCounts(extents.lines(), k);
  // SelectLines writes both results; one that nobody reads goes into a workspace.
  const int scratch_out =
      out.is_there() ? -1 : context.RequestWorkspace(ByteCount(count, kDTypeOf<T>));
  const int scratch_indices =
      indices.is_there() ? -1 : context.RequestWorkspace(ByteCount(count, DType::kInt64));
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents_of_run = ExtentsOfAxis(x.shape(run), selection.axis);
    T* values = out.is_there() ? out(run) : static_cast<T*>(run.workspace(scratch_out));
    int64_t* places =
        indices.is_there() ? indices(run) : static_cast<int64_t*>(run.workspace(scratch_indices));
    Select(selection.largest, extents_of_run, k, x(run), values, places);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int axis = SelectionOf(context).axis;
  const In<int64_t> indices(context, "Indices");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=, type = context.op().type](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(dx.shape(run), axis);
    const int64_t k = ExtentsOfAxis(indices.shape(run), axis).length;
    SpreadToPlaces(type, extents, k, indices(run), gradient(run), dx(run));
  });
}

std::vector<AttrDef> Attributes(bool is_v2) {
  std::vector<AttrDef> attributes = {{.name = "k",
                                      .type = AttrType::kInt,
                                      .default_value = Attribute(int32_t{1}),
                                      .doc = "How many values; ignored if K is given."}};
  if (!is_v2) return attributes;
  attributes.push_back({.name = "axis",
                        .type = AttrType::kInt,
                        .default_value = Attribute(int32_t{-1}),
                        .doc = "The axis; negative ones count from the back."});
  attributes.push_back(
      {.name = "largest",
       .type = AttrType::kBool,
       .default_value = Attribute(true),
       .doc = "The largest values, in descending order; else the smallest, in ascending."});
  attributes.push_back({.name = "sorted",
                        .type = AttrType::kBool,
                        .default_value = Attribute(true),
                        .doc = "Whether the order matters; the outputs are sorted in any case."});
  return attributes;
}

OpDef ForwardDef(StaticText type, bool is_v2) {
  OpDef def;
  def.type = type;
  def.doc = StrCat("The k largest ", is_v2 ? "or smallest values of X along `axis`" : "of each row",
                   ", in order, and their places. Fluid's ", type, ".");
  def.inputs = {
      {.name = "X", .doc = "Of any shape."},
      {.name = "K", .doc = "k, as an integer tensor.", .dispensable = true, .checks_data = true}};
  def.outputs = {
      {.name = "Out", .doc = "The values; X's shape with k along the axis.", .dispensable = true},
      {.name = "Indices", .doc = "Their places along the axis, int64.", .dispensable = true}};
  def.attrs = Attributes(is_v2);
  def.infer = Infer;
  // Rounding makes equals of different numbers, and so other elements the largest.
  def.precision = Precision::kHigh;
  // If K is given, a run finds the shape.
  def.data_dependent_shape = true;
  return def;
}

OpDef GradientDef(OpDef* forward, bool is_v2) {
  std::vector<GradientRead> reads = {ForShape("X"), Checked("Indices"), "Out@GRAD"};
  // Fluid's top_k_grad takes no K, top_k_v2_grad does.
  if (is_v2) reads.push_back(ForShape("K"));
  OpDef def = GradientOf(forward, std::move(reads), {"X@GRAD"});
  def.doc =
      StrCat("The gradient of ", forward->type, ": dX is dOut at the places found, 0 elsewhere.");
  def.infer = InferGrad;
  return def;
}

}  // namespace

void RegisterTopKOp(OpRegistry& registry, bool is_v2) {
  const StaticText type = is_v2 ? "top_k_v2" : "top_k";
  OpDef def = ForwardDef(type, is_v2);
  OpDef grad = GradientDef(&def, is_v2);
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      type, []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      StrCat(type, "_grad"),
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
