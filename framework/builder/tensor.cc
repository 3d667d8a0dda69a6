#include "framework/builder/tensor.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

// An op with an extra output XShape, which its gradient reads instead of X.
Variable WithXShape(const char* type, const Variable& x, const char* attribute, Attribute value,
                    const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)}).SetAttr(attribute, std::move(value));
  const Variable out = call.NewOutput();
  const Variable x_shape = call.NewOutput();
  op.SetOutput("Out", {out.name()}).SetOutput("XShape", {x_shape.name()});
  call.Append(std::move(op));
  x_shape.StopGradient();
  return out;
}

// The axis counted from the front. PaddlePaddle's ops don't all count from the back.
int32_t FromTheFront(const LayerCall& call, const Variable& x, int32_t axis) {
  const auto rank = static_cast<int32_t>(x.dims().size());
  call.Enforce(axis >= -rank && axis < rank, "axis ", axis, " is outside [", -rank, ", ", rank - 1,
               "] for \"", x.name(), "\" of shape ", Shape(x.dims()));
  return axis < 0 ? axis + rank : axis;
}

std::vector<Variable> SplitInto(const LayerCall& call, const Variable& x, size_t parts, Op op) {
  op.SetInput("X", {call.Use(x)});
  std::vector<Variable> outputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < parts; ++i) {
    outputs.push_back(call.NewOutput());
    names.push_back(outputs.back().name());
  }
  op.SetOutput("Out", std::move(names));
  call.Append(std::move(op));
  return outputs;
}

// What the initializer would fill a parameter with, as a variable of the main program.
Variable Filled(const char* type, const std::vector<int64_t>& dims, DType dtype,
                const Initializer& initializer, const Site& site) {
  const LayerCall call(type, "", site);
  const Variable out =
      call.AppendFor(initializer.Make({.name = call.name(), .dtype = dtype, .dims = dims}));
  out.StopGradient();
  return out;
}

template <typename T>
Variable AssignedValue(const std::vector<int64_t>& dims, const std::vector<T>& values,
                       const Site& site) {
  return Filled("assign_value", dims, kDTypeOf<T>, initializer::FromArray(values), site);
}

}  // namespace

Variable FillConstant(const std::vector<int64_t>& dims, DType dtype, double value, Site site) {
  return Filled("fill_constant", dims, dtype, initializer::Constant(value), site);
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
  return Filled("uniform_random", dims, dtype, initializer::Uniform(options), site);
}

Variable GaussianRandom(const std::vector<int64_t>& dims, const initializer::NormalOptions& options,
                        DType dtype, Site site) {
  return Filled("gaussian_random", dims, dtype, initializer::Normal(options), site);
}

Variable TruncatedGaussianRandom(const std::vector<int64_t>& dims,
                                 const initializer::NormalOptions& options, DType dtype,
                                 Site site) {
  return Filled("truncated_gaussian_random", dims, dtype, initializer::TruncatedNormal(options),
                site);
}

Variable ZerosLike(const Variable& x, Site site) {
  const LayerCall call("fill_zeros_like", "", site);
  Op op("fill_zeros_like");
  op.SetInput("X", {call.Use(x)});
  return call.AppendFor(std::move(op));
}

Variable Assign(const Variable& x, Site site) {
  const LayerCall call("assign", "", site);
  Op op("assign");
  op.SetInput("X", {call.Use(x)});
  return call.AppendFor(std::move(op));
}

Variable Cast(const Variable& x, DType dtype, Site site) {
  const LayerCall call("cast", "", site);
  Op op("cast");
  op.SetInput("X", {call.Use(x)});
  op.SetAttr("in_dtype", static_cast<int32_t>(x.dtype()));
  op.SetAttr("out_dtype", static_cast<int32_t>(dtype));
  return call.AppendFor(std::move(op));
}

Variable Reshape(const Variable& x, const std::vector<int32_t>& dims, Site site) {
  return WithXShape("reshape2", x, "shape", dims, site);
}

Variable Transpose(const Variable& x, const std::vector<int32_t>& permutation, Site site) {
  return WithXShape("transpose2", x, "axis", permutation, site);
}

Variable Flatten(const Variable& x, int32_t axis, Site site) {
  const bool from_the_back = axis < 0 && x.defined();
  if (from_the_back) axis += static_cast<int32_t>(x.dims().size());
  return WithXShape("flatten2", x, "axis", axis, site);
}

Variable Squeeze(const Variable& x, const std::vector<int32_t>& axes, Site site) {
  return WithXShape("squeeze2", x, "axes", axes, site);
}

Variable Unsqueeze(const Variable& x, const std::vector<int32_t>& axes, Site site) {
  return WithXShape("unsqueeze2", x, "axes", axes, site);
}

Variable Concat(const std::vector<Variable>& xs, int32_t axis, Site site) {
  const LayerCall call("concat", "", site);
  call.Enforce(!xs.empty(), "there is no input");
  Op op("concat");
  op.SetInput("X", call.Use(xs)).SetAttr("axis", axis);
  return call.AppendFor(std::move(op));
}

std::vector<Variable> Split(const Variable& x, int32_t count, int32_t axis, Site site) {
  const LayerCall call("split", "", site);
  call.Enforce(count > 0, "the number of parts is ", count, ", expected a positive one");
  Op op("split");
  call.Use(x);
  op.SetAttr("num", count).SetAttr("axis", FromTheFront(call, x, axis));
  return SplitInto(call, x, static_cast<size_t>(count), std::move(op));
}

std::vector<Variable> SplitSections(const Variable& x, const std::vector<int32_t>& sections,
                                    int32_t axis, Site site) {
  const LayerCall call("split", "", site);
  call.Enforce(!sections.empty(), "there are no sections");
  Op op("split");
  call.Use(x);
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
  op.SetInput("Input", {call.Use(x)});
  std::vector<int32_t> axes;
  for (const int32_t axis : options.axes) axes.push_back(FromTheFront(call, x, axis));
  std::vector<int32_t> dropped;
  for (const int32_t axis : options.decrease_axis) {
    dropped.push_back(FromTheFront(call, x, axis));
  }
  op.SetAttr("axes", axes).SetAttr("starts", options.starts);
  op.SetAttr("ends", options.ends).SetAttr("decrease_axis", dropped);
  op.SetAttr("infer_flags", std::vector<int32_t>(options.axes.size(), 1));
  return call.AppendFor(std::move(op));
}

TopKResult TopK(const Variable& x, int32_t k, Site site) {
  const LayerCall call("top_k", "", site);
  Op op("top_k");
  op.SetInput("X", {call.Use(x)}).SetAttr("k", k);
  const TopKResult result{call.NewOutput(), call.NewOutput()};
  op.SetOutput("Out", {result.values.name()}).SetOutput("Indices", {result.indices.name()});
  call.Append(std::move(op));
  result.indices.StopGradient();
  return result;
}

}  // namespace skiff::layers
