#include "framework/builder/activation.h"

#include <limits>
#include <utility>
#include <vector>

#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"

namespace skiff::layers {
namespace {

Variable Unary(const char* type, const Variable& x, const Site& site, AttributeMap attrs = {}) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)});
  op.attrs = std::move(attrs);
  return call.AppendFor(std::move(op));
}

}  // namespace

Variable Abs(const Variable& x, Site site) { return Unary("abs", x, site); }
Variable Acos(const Variable& x, Site site) { return Unary("acos", x, site); }
Variable Asin(const Variable& x, Site site) { return Unary("asin", x, site); }
Variable Atan(const Variable& x, Site site) { return Unary("atan", x, site); }
Variable Ceil(const Variable& x, Site site) { return Unary("ceil", x, site); }
Variable Cos(const Variable& x, Site site) { return Unary("cos", x, site); }
Variable Erf(const Variable& x, Site site) { return Unary("erf", x, site); }
Variable Exp(const Variable& x, Site site) { return Unary("exp", x, site); }
Variable Expm1(const Variable& x, Site site) { return Unary("expm1", x, site); }
Variable Floor(const Variable& x, Site site) { return Unary("floor", x, site); }
Variable Log(const Variable& x, Site site) { return Unary("log", x, site); }
Variable Log1p(const Variable& x, Site site) { return Unary("log1p", x, site); }
Variable Reciprocal(const Variable& x, Site site) { return Unary("reciprocal", x, site); }
Variable Relu(const Variable& x, Site site) { return Unary("relu", x, site); }
Variable Relu6(const Variable& x, Site site) { return Unary("relu6", x, site); }
Variable Round(const Variable& x, Site site) { return Unary("round", x, site); }
Variable Rsqrt(const Variable& x, Site site) { return Unary("rsqrt", x, site); }
Variable Sigmoid(const Variable& x, Site site) { return Unary("sigmoid", x, site); }
Variable Sign(const Variable& x, Site site) { return Unary("sign", x, site); }
Variable Silu(const Variable& x, Site site) { return Swish(x, site); }
Variable Sin(const Variable& x, Site site) { return Unary("sin", x, site); }
Variable Softsign(const Variable& x, Site site) { return Unary("softsign", x, site); }
Variable Sqrt(const Variable& x, Site site) { return Unary("sqrt", x, site); }
Variable Square(const Variable& x, Site site) { return Unary("square", x, site); }
Variable Swish(const Variable& x, Site site) { return Unary("swish", x, site); }
Variable Tanh(const Variable& x, Site site) { return Unary("tanh", x, site); }

Variable LeakyRelu(const Variable& x, float alpha, Site site) {
  return Unary("leaky_relu", x, site, {{"alpha", alpha}});
}

Variable Elu(const Variable& x, float alpha, Site site) {
  return Unary("elu", x, site, {{"alpha", alpha}});
}

Variable Gelu(const Variable& x, bool approximate, Site site) {
  return Unary("gelu", x, site, {{"approximate", approximate}});
}

Variable HardSigmoid(const Variable& x, float slope, float offset, Site site) {
  return Unary("hard_sigmoid", x, site, {{"slope", slope}, {"offset", offset}});
}

Variable HardSwish(const Variable& x, float threshold, float scale, float offset, Site site) {
  return Unary("hard_swish", x, site,
               {{"threshold", threshold}, {"scale", scale}, {"offset", offset}});
}

Variable Mish(const Variable& x, float threshold, Site site) {
  return Unary("mish", x, site, {{"threshold", threshold}});
}

Variable Pow(const Variable& x, float factor, Site site) {
  return Unary("pow", x, site, {{"factor", factor}});
}

Variable Selu(const Variable& x, const SeluOptions& options, Site site) {
  return Unary("selu", x, site, {{"scale", options.scale}, {"alpha", options.alpha}});
}

Variable Softplus(const Variable& x, float beta, float threshold, Site site) {
  return Unary("softplus", x, site, {{"beta", beta}, {"threshold", threshold}});
}

Variable LogSigmoid(const Variable& x, Site site) {
  // log(sigmoid(x)) = -log(1 + exp(-x)), which softplus computes without a threshold, too.
  constexpr float kNoThreshold = std::numeric_limits<float>::infinity();
  const Variable softplus = Softplus(Scale(x, {.scale = -1.0f}, site), 1.0f, kNoThreshold, site);
  return Scale(softplus, {.scale = -1.0f}, site);
}

Variable Glu(const Variable& x, int64_t axis, Site site) {
  const std::vector<Variable> halves = Split(x, 2, axis, site);
  return ElementwiseMul(halves[0], Sigmoid(halves[1], site), {}, site);
}

Variable Softmax(const Variable& x, int64_t axis, Site site) {
  return Unary("softmax", x, site, {{"axis", axis}});
}

}  // namespace skiff::layers
