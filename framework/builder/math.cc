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
  const LayerCall call("reduce_sum", "", site);
  Op op("reduce_sum");
  op.SetInput("X", {call.Use(x)});
  op.SetAttr("dim", options.dims.empty() ? std::vector<int32_t>{0} : options.dims);
  op.SetAttr("keep_dim", options.keep_dim).SetAttr("reduce_all", options.dims.empty());
  return call.AppendFor(std::move(op));
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
  return options.alpha == 1.0f ? product : Scale(product, {.scale = options.alpha}, site);
}

}  // namespace skiff::layers
