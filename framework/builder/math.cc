#include "framework/builder/math.h"

#include <utility>

#include "framework/builder/layer_call.h"

namespace skiff::layers {
namespace {

Variable Elementwise(const char* type, const Variable& x, const Variable& y,
                     const ElementwiseOptions& options, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)}).SetAttr("axis", options.axis);
  return call.Activate(call.AppendFor(std::move(op)), options.act);
}

Variable Reduce(const char* type, const Variable& x, const ReduceOptions& options,
                const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)});
  // As Fluid's layers do: with reduce_all, `dim` doesn't count.
  op.SetAttr("dim", options.dims.empty() ? std::vector<int64_t>{0} : options.dims);
  op.SetAttr("keep_dim", options.keep_dim).SetAttr("reduce_all", options.dims.empty());
  return call.AppendFor(std::move(op));
}

// An op of X and Y without attributes.
Variable Product(const char* type, const Variable& x, const Variable& y, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)});
  return call.AppendFor(std::move(op));
}

Variable ArgExtreme(const char* type, const Variable& x, const ArgExtremeOptions& options,
                    const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)}).SetAttr("axis", options.axis);
  op.SetAttr("keepdims", options.keep_dim).SetAttr("flatten", options.flatten);
  return call.AppendFor(std::move(op));
}

}  // namespace

Variable ElementwiseAdd(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_add", x, y, options, site);
}
Variable ElementwiseSub(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_sub", x, y, options, site);
}
Variable ElementwiseMul(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_mul", x, y, options, site);
}
Variable ElementwiseDiv(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_div", x, y, options, site);
}
Variable ElementwiseMax(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_max", x, y, options, site);
}
Variable ElementwiseMin(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_min", x, y, options, site);
}
Variable ElementwiseMod(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_mod", x, y, options, site);
}
Variable ElementwisePow(const Variable& x, const Variable& y, const ElementwiseOptions& options,
                        Site site) {
  return Elementwise("elementwise_pow", x, y, options, site);
}
Variable ElementwiseFloordiv(const Variable& x, const Variable& y,
                             const ElementwiseOptions& options, Site site) {
  return Elementwise("elementwise_floordiv", x, y, options, site);
}

Variable Where(const Variable& condition, const Variable& x, const Variable& y, Site site) {
  const LayerCall call("where", "", site);
  Op op("where");
  op.SetInput("Condition", {call.Use(condition)});
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)});
  return call.AppendFor(std::move(op));
}

Variable Scale(const Variable& x, const ScaleOptions& options, Site site) {
  const LayerCall call("scale", "", site);
  Op op("scale");
  op.SetInput("X", {call.Use(x)}).SetAttr("scale", options.scale).SetAttr("bias", options.bias);
  op.SetAttr("bias_after_scale", options.bias_after_scale);
  return call.Activate(call.AppendFor(std::move(op)), options.act);
}

Variable Clip(const Variable& x, float min, float max, Site site) {
  const LayerCall call("clip", "", site);
  call.Enforce(min <= max, "min = ", min, " is above max = ", max);
  Op op("clip");
  op.SetInput("X", {call.Use(x)}).SetAttr("min", min).SetAttr("max", max);
  return call.AppendFor(std::move(op));
}

Variable ClipByNorm(const Variable& x, float max_norm, Site site) {
  const LayerCall call("clip_by_norm", "", site);
  Op op("clip_by_norm");
  op.SetInput("X", {call.Use(x)}).SetAttr("max_norm", max_norm);
  return call.AppendFor(std::move(op));
}

Variable Mean(const Variable& x, Site site) {
  const LayerCall call("mean", "", site);
  Op op("mean");
  op.SetInput("X", {call.Use(x)});
  return call.AppendFor(std::move(op));
}

Variable Sum(const std::vector<Variable>& xs, Site site) {
  const LayerCall call("sum", "", site);
  call.Enforce(!xs.empty(), "there is nothing to add up");
  Op op("sum");
  op.SetInput("X", call.Use(xs));
  return call.AppendFor(std::move(op));
}

Variable ReduceSum(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_sum", x, options, site);
}
Variable ReduceMean(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_mean", x, options, site);
}
Variable ReduceMax(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_max", x, options, site);
}
Variable ReduceMin(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_min", x, options, site);
}
Variable ReduceProd(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_prod", x, options, site);
}
Variable ReduceAll(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_all", x, options, site);
}
Variable ReduceAny(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_any", x, options, site);
}

Variable SquaredL2Norm(const Variable& x, Site site) {
  const LayerCall call("squared_l2_norm", "", site);
  Op op("squared_l2_norm");
  op.SetInput("X", {call.Use(x)});
  return call.AppendFor(std::move(op));
}

Variable IsFinite(const Variable& x, Site site) {
  const LayerCall call("isfinite", "", site);
  Op op("isfinite");
  op.SetInput("X", {call.Use(x)});
  return call.AppendFor(std::move(op));
}

Variable Cumsum(const Variable& x, const CumsumOptions& options, Site site) {
  const LayerCall call("cumsum", "", site);
  Op op("cumsum");
  op.SetInput("X", {call.Use(x)}).SetAttr("axis", options.axis).SetAttr("flatten", options.flatten);
  op.SetAttr("exclusive", options.exclusive).SetAttr("reverse", options.reverse);
  return call.AppendFor(std::move(op));
}

Variable Mul(const Variable& x, const Variable& y, const MulOptions& options, Site site) {
  const LayerCall call("mul", "", site);
  Op op("mul");
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)});
  op.SetAttr("x_num_col_dims", options.x_num_col_dims);
  op.SetAttr("y_num_col_dims", options.y_num_col_dims);
  return call.AppendFor(std::move(op));
}

Variable MatMul(const Variable& x, const Variable& y, const MatMulOptions& options, Site site) {
  const LayerCall call("matmul", "", site);
  Op op("matmul_v2");
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)});
  op.SetAttr("trans_x", options.transpose_x).SetAttr("trans_y", options.transpose_y);
  const Variable product = call.AppendFor(std::move(op));
  // matmul_v2 has no alpha, unlike Fluid's matmul.
  return options.alpha == 1.0f ? product : Scale(product, {.scale = options.alpha}, site);
}

Variable Bmm(const Variable& x, const Variable& y, Site site) { return Product("bmm", x, y, site); }
Variable Dot(const Variable& x, const Variable& y, Site site) { return Product("dot", x, y, site); }

Variable Addmm(const Variable& input, const Variable& x, const Variable& y,
               const AddmmOptions& options, Site site) {
  const LayerCall call("addmm", "", site);
  Op op("addmm");
  op.SetInput("Input", {call.Use(input)}).SetInput("X", {call.Use(x)});
  op.SetInput("Y", {call.Use(y)}).SetAttr("Alpha", options.alpha).SetAttr("Beta", options.beta);
  return call.AppendFor(std::move(op));
}

Variable LogSoftmax(const Variable& x, int64_t axis, Site site) {
  const LayerCall call("log_softmax", "", site);
  Op op("log_softmax");
  op.SetInput("X", {call.Use(x)}).SetAttr("axis", axis);
  return call.AppendFor(std::move(op));
}

Variable ArgMax(const Variable& x, const ArgExtremeOptions& options, Site site) {
  return ArgExtreme("arg_max", x, options, site);
}
Variable ArgMin(const Variable& x, const ArgExtremeOptions& options, Site site) {
  return ArgExtreme("arg_min", x, options, site);
}

ArgsortResult Argsort(const Variable& x, const ArgsortOptions& options, Site site) {
  const LayerCall call("argsort", "", site);
  Op op("argsort");
  op.SetInput("X", {call.Use(x)}).SetAttr("axis", options.axis);
  op.SetAttr("descending", options.descending);
  const ArgsortResult result{call.NewOutput(), call.NewOutput()};
  op.SetOutput("Out", {result.values.name()}).SetOutput("Indices", {result.indices.name()});
  call.Append(std::move(op));
  return result;
}

Variable PNorm(const Variable& x, const PNormOptions& options, Site site) {
  const LayerCall call("p_norm", "", site);
  Op op("p_norm");
  op.SetInput("X", {call.Use(x)}).SetAttr("porder", options.order);
  op.SetAttr("axis", options.axis.value_or(-1)).SetAttr("asvector", !options.axis.has_value());
  op.SetAttr("keepdim", options.keep_dim);
  return call.AppendFor(std::move(op));
}

Variable L2Normalize(const Variable& x, int64_t axis, float epsilon, Site site) {
  const LayerCall call("l2_normalize", "", site);
  Op op("norm");
  op.SetInput("X", {call.Use(x)}).SetAttr("axis", axis).SetAttr("epsilon", epsilon);
  op.SetOutput("Norm", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

Variable CosSim(const Variable& x, const Variable& y, Site site) {
  const LayerCall call("cos_sim", "", site);
  Op op("cos_sim");
  op.SetInput("X", {call.Use(x)}).SetInput("Y", {call.Use(y)});
  op.SetOutput("XNorm", {call.NewSavedOutput()}).SetOutput("YNorm", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

}  // namespace skiff::layers
