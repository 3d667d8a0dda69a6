#include "framework/builder/elementwise.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/number_like.h"

namespace skiff::layers {
namespace {

Variable Elementwise(const char* type, const Variable& x, const Variable& y,
                     const ElementwiseOptions& options, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("Y", {call.CheckedName(y)})
      .SetAttr("axis", options.axis);
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

Variable ElementwiseMax(const Variable& x, double y, Site site) {
  return ElementwiseMax(x, NumberLike(x, y, site), {}, site);
}
Variable ElementwiseMin(const Variable& x, double y, Site site) {
  return ElementwiseMin(x, NumberLike(x, y, site), {}, site);
}
Variable ElementwiseMod(const Variable& x, double y, Site site) {
  return ElementwiseMod(x, NumberLike(x, y, site), {}, site);
}
Variable ElementwisePow(const Variable& x, double y, Site site) {
  return ElementwisePow(x, NumberLike(x, y, site), {}, site);
}
Variable ElementwisePow(double x, const Variable& y, Site site) {
  return ElementwisePow(NumberLike(y, x, site), y, {}, site);
}
Variable ElementwiseFloordiv(const Variable& x, double y, Site site) {
  return ElementwiseFloordiv(x, NumberLike(x, y, site), {}, site);
}

Variable Scale(const Variable& x, const ScaleOptions& options, Site site) {
  const LayerCall call("scale", "", site);
  Op op("scale");
  op.SetInput("X", {call.CheckedName(x)})
      .SetAttr("scale", options.scale)
      .SetAttr("bias", options.bias);
  op.SetAttr("bias_after_scale", options.bias_after_scale);
  return call.Activate(call.AppendFor(std::move(op)), options.act);
}

}  // namespace skiff::layers
