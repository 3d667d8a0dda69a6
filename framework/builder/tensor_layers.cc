#include "framework/builder/tensor_layers.h"

#include <cmath>
#include <utility>

#include "framework/builder/elementwise.h"
#include "framework/builder/fill_value.h"
#include "framework/builder/layer_call.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

// Appends an op with an extra output XShape, which its gradient reads instead of X, so that X
// needn't be kept. As in Fluid, XShape holds the dims of X after a dim of 0, and no data.
Variable WithXShape(const LayerCall& call, Op op, const Variable& x) {
  op.SetInput("X", {call.CheckedName(x)});
  const Variable out = call.NewOutput();
  const Variable x_shape = call.NewOutput();
  op.SetOutput("Out", {out.name()}).SetOutput("XShape", {x_shape.name()});
  call.Append(std::move(op));
  x_shape.StopGradient();
  return out;
}

Variable WithXShape(const char* type, const Variable& x, AttributeMap attrs, const Site& site) {
  Op op(type);
  op.attrs = std::move(attrs);
  return WithXShape(LayerCall(type, "", site), std::move(op), x);
}

// Returns the axis counted from the front: not all of PaddlePaddle's ops can count from the back.
int64_t FromTheFront(const LayerCall& call, const Variable& x, int64_t axis) {
  const auto rank = static_cast<int64_t>(x.dims().size());
  call.Enforce(axis >= -rank && axis < rank, "axis ", axis, " is outside [", -rank, ", ", rank - 1,
               "] for \"", x.name(), "\" of shape ", Shape(x.dims()));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> FromTheFront(const LayerCall& call, const Variable& x,
                                  std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = FromTheFront(call, x, axis);
  return axes;
}

// Appends the op with `parts` new outputs in `slot`.
std::vector<Variable> AppendForParts(const LayerCall& call, Op op, size_t parts,
                                     std::string_view slot) {
  std::vector<Variable> outputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < parts; ++i) {
    outputs.push_back(call.NewOutput());
    names.push_back(outputs.back().name());
  }
  op.SetOutput(slot, std::move(names));
  call.Append(std::move(op));
  return outputs;
}

// Returns FilledVariable with the shape and dtype of x.
Variable DrawnLike(const char* type, const Variable& x, const Initializer& initializer,
                   const Site& site) {
  const LayerCall call(type, "", site);
  call.CheckedName(x);
  if (Shape(x.dims()).is_known())
    return FilledVariable(type, x.dims(), x.dtype(), initializer, site);
  Op op = initializer.Make({.name = call.name(), .dtype = x.dtype()});
  op.SetInput("ShapeTensor", {ShapeOf(x, site).name()});
  const Variable out = call.AppendFor(std::move(op));
  // The rule of the op knows nothing but the rank.
  out.var().dims = x.dims();
  out.StopGradient();
  return out;
}

template <typename T>
Variable AssignedValue(const std::vector<int64_t>& dims, const std::vector<T>& values,
                       const Site& site) {
  return FilledVariable("assign_value", dims, kDTypeOf<T>, initializer::FromArray(values), site);
}

std::vector<Variable> SplitInto(const LayerCall& call, const Variable& x, size_t parts, Op op) {
  op.SetInput("X", {call.CheckedName(x)});
  return AppendForParts(call, std::move(op), parts, "Out");
}

// An op X -> Out.
Variable FromX(const char* type, const Variable& x, AttributeMap attrs, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.attrs = std::move(attrs);
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

// Marks the variable as one that no gradient flows through.
Variable WithoutGradient(Variable x) {
  x.StopGradient();
  return x;
}

}  // namespace

Variable FillConstant(const std::vector<int64_t>& dims, DType dtype, double value, Site site) {
  return FilledVariable("fill_constant", dims, dtype, initializer::Constant(value), site);
}

Variable FillConstantBatchSizeLike(const Variable& input, const std::vector<int64_t>& dims,
                                   DType dtype, double value, const BatchSizeLikeOptions& options,
                                   Site site) {
  const LayerCall call("fill_constant_batch_size_like", "", site);
  Op op("fill_constant_batch_size_like");
  op.SetInput("Input", {call.CheckedName(input)}).SetAttr("shape", dims);
  op.SetAttr("dtype", static_cast<int32_t>(dtype));
  op.SetAttr("input_dim_idx", options.input_dim_idx);
  op.SetAttr("output_dim_idx", options.output_dim_idx);
  SetFillValue(&op, dtype, value);
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable Range(int64_t start, int64_t end, int64_t step, Site site) {
  const LayerCall call("range", "", site);
  call.Enforce(step != 0 && (step > 0 ? start < end : start > end), "from ", start, " to ", end,
               " by steps of ", step, " there is no number");
  // Unsigned, since the distance may be beyond int64 (signed overflow would be undefined).
  const auto from = static_cast<uint64_t>(step > 0 ? start : end);
  const auto to = static_cast<uint64_t>(step > 0 ? end : start);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const uint64_t count = (to - from - 1) / stride + 1;
  // The numbers become an attribute, and every copy of the program holds them.
  constexpr uint64_t kMost = uint64_t{1} << 24;
  call.Enforce(count <= kMost, "from ", start, " to ", end, " there are ", count,
               " numbers, expected at most ", kMost, " in a program");
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < count; ++i) {
    values.push_back(
        static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step)));
  }
  return AssignValue({static_cast<int64_t>(count)}, values, site);
}

Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<float>& values,
                     Site site) {
  return AssignedValue(dims, values, site);
}
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<double>& values,
                     Site site) {
  return AssignedValue(dims, values, site);
}
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int32_t>& values,
                     Site site) {
  return AssignedValue(dims, values, site);
}
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int64_t>& values,
                     Site site) {
  return AssignedValue(dims, values, site);
}

Variable UniformRandom(const std::vector<int64_t>& dims, const initializer::UniformOptions& options,
                       DType dtype, Site site) {
  return FilledVariable("uniform_random", dims, dtype, initializer::Uniform(options), site);
}

Variable GaussianRandom(const std::vector<int64_t>& dims, const initializer::NormalOptions& options,
                        DType dtype, Site site) {
  return FilledVariable("gaussian_random", dims, dtype, initializer::Normal(options), site);
}

Variable TruncatedGaussianRandom(const std::vector<int64_t>& dims,
                                 const initializer::NormalOptions& options, DType dtype,
                                 Site site) {
  return FilledVariable("truncated_gaussian_random", dims, dtype,
                        initializer::TruncatedNormal(options), site);
}

Variable ZerosLike(const Variable& x, Site site) {
  const LayerCall call("fill_zeros_like", "", site);
  Op op("fill_zeros_like");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable OnesLike(const Variable& x, Site site) {
  return Scale(ZerosLike(x, site), {.bias = 1.0f}, site);
}

Variable FullLike(const Variable& x, double value, std::optional<DType> dtype, Site site) {
  const LayerCall call("fill_any_like", "", site);
  Op op("fill_any_like");
  op.SetInput("X", {call.CheckedName(x)});
  const DType of_result = dtype.value_or(x.dtype());
  call.Enforce(MayHold(of_result, value), value, " is no whole number that ", of_result,
               " can hold");
  op.SetAttr("dtype", static_cast<int32_t>(of_result));
  // The attribute is a float. What it can't hold, a constant can.
  const bool is_exact = static_cast<double>(static_cast<float>(value)) == value ||
                        std::isnan(value) || (IsFloat(of_result) && of_result != DType::kFloat64);
  op.SetAttr("value", is_exact ? static_cast<float>(value) : 1.0f);
  const Variable filled = WithoutGradient(call.AppendFor(std::move(op)));
  if (is_exact) return filled;
  return WithoutGradient(
      ElementwiseMul(filled, FillConstant({}, of_result, value, site), {}, site));
}

Variable UniformRandomLike(const Variable& x, const initializer::UniformOptions& options,
                           Site site) {
  return DrawnLike("uniform_random", x, initializer::Uniform(options), site);
}

Variable GaussianRandomLike(const Variable& x, const initializer::NormalOptions& options,
                            Site site) {
  return DrawnLike("gaussian_random", x, initializer::Normal(options), site);
}

Variable Assign(const Variable& x, Site site) {
  const LayerCall call("assign", "", site);
  Op op("assign");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable Detach(const Variable& x, Site site) { return WithoutGradient(Assign(x, site)); }

Variable SelectedRowsToDense(const Variable& x, Site site) {
  const LayerCall call("selected_rows_to_dense", "", site);
  Op op("selected_rows_to_dense");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable Cast(const Variable& x, DType dtype, Site site) {
  const LayerCall call("cast", "", site);
  Op op("cast");
  op.SetInput("X", {call.CheckedName(x)});
  op.SetAttr("in_dtype", static_cast<int32_t>(x.dtype()));
  op.SetAttr("out_dtype", static_cast<int32_t>(dtype));
  return call.AppendFor(std::move(op));
}

Variable Reshape(const Variable& x, const std::vector<int64_t>& dims, Site site) {
  return WithXShape("reshape2", x, {{"shape", dims}}, site);
}

Variable ReshapeTo(const Variable& x, const Variable& dims, Site site) {
  const LayerCall call("reshape2", "", site);
  return WithXShape(call, Op("reshape2").SetInput("Shape", {call.CheckedName(dims)}), x);
}

Variable Transpose(const Variable& x, const std::vector<int64_t>& permutation, Site site) {
  return WithXShape("transpose2", x, {{"axis", permutation}}, site);
}

Variable Flatten(const Variable& x, int64_t axis, Site site) {
  const bool from_the_back = axis < 0 && x.defined();
  if (from_the_back) axis += static_cast<int64_t>(x.dims().size());
  return WithXShape("flatten2", x, {{"axis", axis}}, site);
}

Variable FlattenRange(const Variable& x, int64_t start_axis, int64_t stop_axis, Site site) {
  return WithXShape("flatten_contiguous_range", x,
                    {{"start_axis", start_axis}, {"stop_axis", stop_axis}}, site);
}

Variable Squeeze(const Variable& x, const std::vector<int64_t>& axes, Site site) {
  return WithXShape("squeeze2", x, {{"axes", axes}}, site);
}

Variable Unsqueeze(const Variable& x, const std::vector<int64_t>& axes, Site site) {
  return WithXShape("unsqueeze2", x, {{"axes", axes}}, site);
}

Variable Concat(const std::vector<Variable>& xs, int64_t axis, Site site) {
  const LayerCall call("concat", "", site);
  call.Enforce(!xs.empty(), "there is no input");
  Op op("concat");
  op.SetInput("X", call.CheckedNames(xs)).SetAttr("axis", axis);
  return call.AppendFor(std::move(op));
}

std::vector<Variable> Split(const Variable& x, int64_t count, int64_t axis, Site site) {
  const LayerCall call("split", "", site);
  call.Enforce(count > 0, "the number of parts is ", count, ", expected a positive one");
  Op op("split");
  call.CheckedName(x);
  op.SetAttr("num", count).SetAttr("axis", FromTheFront(call, x, axis));
  return SplitInto(call, x, static_cast<size_t>(count), std::move(op));
}

std::vector<Variable> SplitSections(const Variable& x, const std::vector<int64_t>& sections,
                                    int64_t axis, Site site) {
  const LayerCall call("split", "", site);
  call.Enforce(!sections.empty(), "there are no sections");
  Op op("split");
  call.CheckedName(x);
  op.SetAttr("sections", sections).SetAttr("axis", FromTheFront(call, x, axis));
  return SplitInto(call, x, sections.size(), std::move(op));
}

Variable Slice(const Variable& x, const SliceOptions& options, Site site) {
  const LayerCall call("slice", "", site);
  call.Enforce(
      options.axes.size() == options.starts.size() && options.axes.size() == options.ends.size(),
      "axes, starts and ends have ", options.axes.size(), ", ", options.starts.size(), " and ",
      options.ends.size(), " entries, expected the same number");
  Op op("slice");
  op.SetInput("Input", {call.CheckedName(x)});
  op.SetAttr("axes", FromTheFront(call, x, options.axes)).SetAttr("starts", options.starts);
  op.SetAttr("ends", options.ends);
  op.SetAttr("decrease_axis", FromTheFront(call, x, options.decrease_axis));
  op.SetAttr("infer_flags", std::vector<int64_t>(options.axes.size(), 1));
  return call.AppendFor(std::move(op));
}

TopKResult TopK(const Variable& x, int64_t k, Site site) {
  const LayerCall call("top_k", "", site);
  Op op("top_k");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("k", k);
  const TopKResult result{call.NewOutput(), call.NewOutput()};
  op.SetOutput("Out", {result.values.name()}).SetOutput("Indices", {result.indices.name()});
  call.Append(std::move(op));
  result.indices.StopGradient();
  return result;
}

Variable Gather(const Variable& x, const Variable& index, int64_t axis, Site site) {
  const LayerCall call("gather", "", site);
  Op op("gather");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  op.SetAttr("axis", FromTheFront(call, x, axis));
  return call.AppendFor(std::move(op));
}

Variable TakeAlongAxis(const Variable& x, const Variable& index, int64_t axis, Site site) {
  const LayerCall call("take_along_axis", "", site);
  Op op("take_along_axis");
  op.SetInput("Input", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  op.SetAttr("Axis", FromTheFront(call, x, axis));
  return call.AppendFor(std::move(op), "Result");
}

Variable PutAlongAxis(const Variable& x, const Variable& index, const Variable& value, int64_t axis,
                      const std::string& reduce, Site site) {
  const LayerCall call("put_along_axis", "", site);
  Op op("put_along_axis");
  op.SetInput("Input", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  op.SetInput("Value", {call.CheckedName(value)}).SetAttr("Axis", FromTheFront(call, x, axis));
  op.SetAttr("Reduce", reduce);
  return call.AppendFor(std::move(op), "Result");
}
Variable PutAlongAxis(const Variable& x, const Variable& index, double value, int64_t axis,
                      const std::string& reduce, Site site) {
  const LayerCall call("put_along_axis", "", site);
  call.CheckedName(x);
  return PutAlongAxis(x, index, FullLike(index, value, x.dtype(), site), axis, reduce, site);
}

Variable IndexSelect(const Variable& x, const Variable& index, int64_t axis, Site site) {
  const LayerCall call("index_select", "", site);
  Op op("index_select");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  op.SetAttr("dim", FromTheFront(call, x, axis));
  return call.AppendFor(std::move(op));
}

Variable WhereIndex(const Variable& condition, Site site) {
  const LayerCall call("where_index", "", site);
  Op op("where_index");
  op.SetInput("Condition", {call.CheckedName(condition)});
  return call.AppendFor(std::move(op));
}

Variable MaskedSelect(const Variable& x, const Variable& mask, Site site) {
  const LayerCall call("masked_select", "", site);
  Op op("masked_select");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Mask", {call.CheckedName(mask)});
  return call.AppendFor(std::move(op), "Y");
}

Variable GatherNd(const Variable& x, const Variable& index, Site site) {
  const LayerCall call("gather_nd", "", site);
  Op op("gather_nd");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  return call.AppendFor(std::move(op));
}

Variable Scatter(const Variable& x, const Variable& index, const Variable& updates, bool overwrite,
                 Site site) {
  const LayerCall call("scatter", "", site);
  Op op("scatter");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Ids", {call.CheckedName(index)});
  op.SetInput("Updates", {call.CheckedName(updates)}).SetAttr("overwrite", overwrite);
  return call.AppendFor(std::move(op));
}

Variable ScatterNdAdd(const Variable& x, const Variable& index, const Variable& updates,
                      Site site) {
  const LayerCall call("scatter_nd_add", "", site);
  Op op("scatter_nd_add");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Index", {call.CheckedName(index)});
  op.SetInput("Updates", {call.CheckedName(updates)});
  return call.AppendFor(std::move(op));
}

Variable OneHot(const Variable& index, int64_t depth, DType dtype, Site site) {
  const LayerCall call("one_hot_v2", "", site);
  Op op("one_hot_v2");
  op.SetInput("X", {call.CheckedName(index)}).SetAttr("depth", depth);
  op.SetAttr("dtype", static_cast<int32_t>(dtype));
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable Stack(const std::vector<Variable>& xs, int64_t axis, Site site) {
  const LayerCall call("stack", "", site);
  call.Enforce(!xs.empty(), "there is no input");
  Op op("stack");
  op.SetInput("X", call.CheckedNames(xs)).SetAttr("axis", axis);
  return call.AppendFor(std::move(op), "Y");
}

std::vector<Variable> Unstack(const Variable& x, int64_t axis, Site site) {
  const LayerCall call("unstack", "", site);
  const std::string name = call.CheckedName(x);
  axis = FromTheFront(call, x, axis);
  const int64_t parts = x.dims()[static_cast<size_t>(axis)];
  call.Enforce(parts > 0, "the extent of axis ", axis, " is ", parts,
               ", expected a known, positive one");
  Op op("unstack");
  op.SetInput("X", {name}).SetAttr("axis", axis).SetAttr("num", parts);
  return AppendForParts(call, std::move(op), static_cast<size_t>(parts), "Y");
}

Variable StridedSlice(const Variable& x, const StridedSliceOptions& options, Site site) {
  const LayerCall call("strided_slice", "", site);
  Op op("strided_slice");
  op.SetInput("Input", {call.CheckedName(x)}).SetAttr("axes", FromTheFront(call, x, options.axes));
  op.SetAttr("starts", options.starts).SetAttr("ends", options.ends);
  op.SetAttr("strides", options.strides);
  op.SetAttr("infer_flags", std::vector<int64_t>(options.axes.size(), 1));
  return call.AppendFor(std::move(op));
}

namespace {

Op SetValueOp(const LayerCall& call, const Variable& x, const SetValueOptions& options) {
  Op op("set_value");
  op.SetInput("Input", {call.CheckedName(x)}).SetAttr("axes", FromTheFront(call, x, options.axes));
  op.SetAttr("starts", options.starts).SetAttr("ends", options.ends);
  op.SetAttr("steps",
             options.steps.empty() ? std::vector<int64_t>(options.axes.size(), 1) : options.steps);
  op.SetAttr("decrease_axes", FromTheFront(call, x, options.decrease_axes));
  op.SetAttr("dtype", static_cast<int32_t>(x.dtype()));
  return op;
}

}  // namespace

Variable SetValue(const Variable& x, const Variable& value, const SetValueOptions& options,
                  Site site) {
  const LayerCall call("set_value", "", site);
  Op op = SetValueOp(call, x, options);
  return call.AppendFor(std::move(op.SetInput("ValueTensor", {call.CheckedName(value)})));
}

Variable SetValue(const Variable& x, double value, const SetValueOptions& options, Site site) {
  const LayerCall call("set_value", "", site);
  Op op = SetValueOp(call, x, options);
  const bool is_of_floats = IsFloat(x.dtype());
  call.Enforce(is_of_floats || value == std::trunc(value), "the value ", value,
               " isn't whole, but \"", x.name(), "\" is ", x.dtype());
  // A double may stand for another whole number from 2^53 on.
  call.Enforce(is_of_floats || (MayHold(x.dtype(), value) && std::abs(value) < 0x1p53),
               "the value ", value, " doesn't fit \"", x.name(), "\" of ", x.dtype(),
               ", expected a number that it can hold, between -2^53 and 2^53; for others, give a "
               "tensor");
  op.SetAttr("values", std::vector<double>{value}).SetAttr("shape", std::vector<int64_t>{1});
  return call.AppendFor(std::move(op));
}

Variable Tile(const Variable& x, const std::vector<int64_t>& times, Site site) {
  return FromX("tile", x, {{"repeat_times", times}}, site);
}

Variable RepeatInterleave(const Variable& x, int64_t times, int64_t axis, Site site) {
  const LayerCall call("repeat_interleave", "", site);
  call.CheckedName(x);
  call.Enforce(times >= 1, "times = ", times, ", expected at least 1");
  axis = FromTheFront(call, x, axis);
  std::vector<int64_t> dims(x.dims().size() + 1, -1);
  dims[static_cast<size_t>(axis) + 1] = times;
  return FlattenRange(Expand(Unsqueeze(x, {axis + 1}, site), dims, site), axis, axis + 1, site);
}

Variable Expand(const Variable& x, const std::vector<int64_t>& dims, Site site) {
  return FromX("expand_v2", x, {{"shape", dims}}, site);
}

Variable ExpandTo(const Variable& x, const Variable& dims, Site site) {
  const LayerCall call("expand_v2", "", site);
  return call.AppendFor(Op("expand_v2")
                            .SetInput("X", {call.CheckedName(x)})
                            .SetInput("Shape", {call.CheckedName(dims)}));
}

Variable ExpandAs(const Variable& x, const Variable& y, Site site) {
  const LayerCall call("expand_as_v2", "", site);
  Op op("expand_as_v2");
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("Y", {call.CheckedName(y)})
      .SetAttr("target_shape", y.dims());
  return call.AppendFor(std::move(op));
}

Variable Pad(const Variable& x, const std::vector<int64_t>& paddings, float value, Site site) {
  return FromX("pad", x, {{"paddings", paddings}, {"pad_value", value}}, site);
}

Variable Pad3d(const Variable& x, const Pad3dOptions& options, Site site) {
  return FromX("pad3d", x,
               {{"paddings", options.paddings},
                {"mode", options.mode},
                {"value", options.value},
                {"data_format", options.data_format}},
               site);
}

Variable Pad2d(const Variable& x, const Pad2dOptions& options, Site site) {
  // pad2d has no such mode. As images of one plane.
  if (options.mode == "circular") {
    const LayerCall call("pad2d", "", site);
    call.CheckedName(x);
    const bool is_last = options.data_format == "NHWC";
    const std::vector<int64_t>& given = options.paddings;
    call.Enforce(is_last || options.data_format == "NCHW", "data_format = \"", options.data_format,
                 "\", expected NCHW or NHWC");
    call.Enforce(x.dims().size() == 4 && given.size() == 4, "\"", x.name(), "\" of shape ",
                 Shape(x.dims()), " and ", given.size(), " paddings, expected rank 4 and 4");
    const Variable padded = Pad3d(Unsqueeze(x, {is_last ? 1 : 2}, site),
                                  {.paddings = {given[2], given[3], given[0], given[1], 0, 0},
                                   .mode = options.mode,
                                   .data_format = is_last ? "NDHWC" : "NCDHW"},
                                  site);
    return Squeeze(padded, {is_last ? 1 : 2}, site);
  }
  return FromX("pad2d", x,
               {{"paddings", options.paddings},
                {"mode", options.mode},
                {"pad_value", options.value},
                {"data_format", options.data_format}},
               site);
}

Variable Pad1d(const Variable& x, const Pad1dOptions& options, Site site) {
  const LayerCall call("pad1d", "", site);
  call.CheckedName(x);
  call.Enforce(x.dims().size() == 3 && options.paddings.size() == 2, "\"", x.name(), "\" of shape ",
               Shape(x.dims()), " and ", options.paddings.size(),
               " paddings, expected [N, C, L] and 2");
  // As an image of one row.
  const Variable padded = Pad2d(Unsqueeze(x, {2}, site),
                                {.paddings = {0, 0, options.paddings[0], options.paddings[1]},
                                 .mode = options.mode,
                                 .value = options.value},
                                site);
  return Squeeze(padded, {2}, site);
}

Variable PixelShuffle(const Variable& x, int64_t factor, Site site) {
  return FromX("pixel_shuffle", x, {{"upscale_factor", factor}}, site);
}

Variable Flip(const Variable& x, const std::vector<int64_t>& axes, Site site) {
  return FromX("flip", x, {{"axis", axes}}, site);
}

Variable Roll(const Variable& x, const std::vector<int64_t>& shifts,
              const std::vector<int64_t>& axes, Site site) {
  return FromX("roll", x, {{"shifts", shifts}, {"axis", axes}}, site);
}

Variable Tril(const Variable& x, int64_t diagonal, Site site) {
  return FromX("tril_triu", x, {{"diagonal", diagonal}, {"lower", true}}, site);
}

Variable Triu(const Variable& x, int64_t diagonal, Site site) {
  return FromX("tril_triu", x, {{"diagonal", diagonal}, {"lower", false}}, site);
}

Variable Diag(const Variable& x, int64_t offset, float padding_value, Site site) {
  return FromX("diag_v2", x, {{"offset", offset}, {"padding_value", padding_value}}, site);
}

std::vector<Variable> Meshgrid(const std::vector<Variable>& xs, Site site) {
  const LayerCall call("meshgrid", "", site);
  call.Enforce(xs.size() >= 2, "there are ", xs.size(), " vectors, expected two or more");
  Op op("meshgrid");
  op.SetInput("X", call.CheckedNames(xs));
  return AppendForParts(call, std::move(op), xs.size(), "Out");
}

Variable Eye(int64_t rows, int64_t columns, DType dtype, Site site) {
  const LayerCall call("eye", "", site);
  Op op("eye");
  op.SetAttr("num_rows", rows).SetAttr("num_columns", columns);
  op.SetAttr("dtype", static_cast<int32_t>(dtype));
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable ShapeOf(const Variable& x, Site site) {
  const LayerCall call("shape", "", site);
  Op op("shape");
  op.SetInput("Input", {call.CheckedName(x)});
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable RandInt(const std::vector<int64_t>& dims, int32_t low, int32_t high, DType dtype,
                 Site site) {
  const LayerCall call("randint", "", site);
  Op op("randint");
  op.SetAttr("shape", dims).SetAttr("low", low).SetAttr("high", high);
  op.SetAttr("dtype", static_cast<int32_t>(dtype));
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable RandPerm(int64_t n, DType dtype, Site site) {
  const LayerCall call("randperm", "", site);
  Op op("randperm");
  op.SetAttr("n", n).SetAttr("dtype", static_cast<int32_t>(dtype));
  return WithoutGradient(call.AppendFor(std::move(op)));
}

Variable Bernoulli(const Variable& x, Site site) {
  return WithoutGradient(FromX("bernoulli", x, {}, site));
}

Variable Multinomial(const Variable& weights, int64_t samples, bool replacement, Site site) {
  return WithoutGradient(FromX("multinomial", weights,
                               {{"num_samples", samples}, {"replacement", replacement}}, site));
}

Variable Print(const Variable& x, const PrintOptions& options, Site site) {
  const LayerCall call("print", "", site);
  Op op("print");
  op.SetInput("In", {call.CheckedName(x)}).SetAttr("message", options.message);
  op.SetAttr("first_n", options.first_n).SetAttr("summarize", options.summarize);
  op.SetAttr("print_phase", options.phase);
  return call.AppendFor(std::move(op));
}

void Assert(const Variable& condition, const std::vector<Variable>& data, int64_t summarize,
            Site site) {
  const LayerCall call("assert", "", site);
  call.Enforce(!data.empty(), "there is no data to show");
  Op op("assert");
  op.SetInput("Cond", {call.CheckedName(condition)}).SetInput("Data", call.CheckedNames(data));
  op.SetAttr("summarize", summarize);
  call.Append(std::move(op));
}

}  // namespace skiff::layers
