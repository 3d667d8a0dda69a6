#include "operators/math/kernels/reduction.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Fluid's reductions can convert X before and Out after; this isn't implemented.
void CheckDtypes(const OpContext& context, DType out) {
  const auto check = [&](const char* name, const char* of, DType dtype) {
    const int64_t wanted = context.IntAttr(name);
    // Rules see float32 in place of half, which InferOutputs checks.
    const bool is_half =
        IsDType(static_cast<int32_t>(wanted)) && IsHalf(static_cast<DType>(wanted));
    SKIFF_ENFORCE(wanted < 0 || wanted == static_cast<int64_t>(dtype) || is_half, kUnimplemented,
                  context.op().type, ": ", name, " = ", wanted, ", expected -1 or ", of, " own, ",
                  static_cast<int32_t>(dtype), " (", dtype, "); cast X before");
  };
  check("in_dtype", "X's", context.Input("X").dtype);
  check("out_dtype", "Out's", out);
}

bool KnowsAxes(const OpContext& context, const ReductionAttrNames& names) {
  return context.Attr<bool>("reduce_all") || context.Knows(names.dims);
}

}  // namespace

std::vector<AttrDef> ReductionAttributes(AttrType type_of_dim) {
  const Attribute first_axis = type_of_dim == AttrType::kLongs ? Attribute(std::vector<int64_t>{0})
                                                               : Attribute(std::vector<int32_t>{0});
  return {{.name = "dim",
           .type = type_of_dim,
           .default_value = first_axis,
           .doc = "The axes to reduce over; negative ones count from the back, none means all."},
          {.name = "keep_dim",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Reduced axes stay as dims of 1."},
          {.name = "reduce_all",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Reduce over all axes, whatever `dim` says."},
          {.name = "in_dtype",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "-1 or X's dtype.",
           .names_dtype = true},
          {.name = "out_dtype",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "-1 or Out's dtype.",
           .names_dtype = true}};
}

AxisFlags ReducedAxes(const OpContext& context, const ReductionAttrNames& names) {
  const Shape& shape = context.Input("X").shape;
  const std::vector<int64_t> axes = context.IntsAttr(names.dims);
  const bool all = context.Attr<bool>("reduce_all") || axes.empty();
  AxisFlags reduced{};
  std::fill_n(reduced.begin(), shape.rank(), all);
  if (all) return reduced;
  for (const int64_t axis : axes) {
    // As in Fluid, a scalar has an axis 0.
    const int index =
        NormalizeAxis(axis, std::max(shape.rank(), 1), StrCat(context.op().type, ": ", names.dims));
    if (shape.rank() == 0) continue;
    SKIFF_ENFORCE(!reduced[static_cast<size_t>(index)], kInvalidArgument, context.op().type, ": ",
                  names.dims, " = [", Join(axes, ", "), "]: axis ", axis, " is listed twice for X ",
                  shape);
    reduced[static_cast<size_t>(index)] = true;
  }
  return reduced;
}

Shape ReducedShape(const OpContext& context, const ReductionAttrNames& names) {
  const Shape& shape = context.Input("X").shape;
  if (!KnowsAxes(context, names)) {
    const bool keeps = context.Attr<bool>(names.keep_dim);
    const auto count = static_cast<int>(context.DimsAttr(names.dims).size());
    // An empty list means all axes.
    const int reduced = keeps ? 0 : count == 0 ? shape.rank() : count;
    return Shape(
        std::vector<int64_t>(static_cast<size_t>(std::max(shape.rank() - reduced, 0)), -1));
  }
  const AxisFlags reduced = ReducedAxes(context, names);
  const bool keep_dim = context.Attr<bool>(names.keep_dim);
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)]) {
      out.Append(shape[axis]);
    } else if (keep_dim) {
      out.Append(1);
    }
  }
  return out;
}

void SetReducedOutput(OpContext& context, DType dtype, const ReductionAttrNames& names) {
  // If axis 0 stays, so do the rows.
  const bool keeps_rows = context.Input("X").shape.rank() > 0 && KnowsAxes(context, names) &&
                          !ReducedAxes(context, names).front();
  if (keeps_rows) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", ReducedShape(context, names), dtype);
}

void InferReduction(OpContext& context, DType dtype) {
  CheckDtypes(context, dtype);
  SetReducedOutput(context, dtype);
}

// A mean, maximum or minimum of no elements isn't defined, unlike an empty sum or product.
void CheckSomethingIsReduced(std::string_view op, const Shape& x, const AxisReduction& reduction) {
  SKIFF_ENFORCE(reduction.reduced_count() > 0 || reduction.output_count() == 0, kInvalidArgument,
                op, ": X of shape ", x, " leaves no elements for an output, expected at least one");
}

OpDef ReductionDef(StaticText type, StaticText doc) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {{.name = "X", .doc = "Of any shape."}};
  def.outputs = {{.name = "Out", .doc = "The results; of rank 0 if no dim is left."}};
  def.attrs = ReductionAttributes();
  def.infer = [](OpContext& context) { InferReduction(context, context.Input("X").dtype); };
  return def;
}

}  // namespace skiff
