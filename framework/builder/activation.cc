#include "framework/builder/activation.h"

#include <utility>

#include "framework/builder/layer_call.h"

namespace skiff::layers {
namespace {

Variable Unary(const char* type, const Variable& x, const Site& site, AttributeMap attrs = {}) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.Use(x)});
  op.attrs = std::move(attrs);
  return call.AppendFor(std::move(op));
}

}  // namespace

Variable Cos(const Variable& x, Site site) { return Unary("cos", x, site); }
Variable Exp(const Variable& x, Site site) { return Unary("exp", x, site); }
Variable Floor(const Variable& x, Site site) { return Unary("floor", x, site); }
Variable Log(const Variable& x, Site site) { return Unary("log", x, site); }
Variable Relu(const Variable& x, Site site) { return Unary("relu", x, site); }
Variable Sigmoid(const Variable& x, Site site) { return Unary("sigmoid", x, site); }
Variable Sign(const Variable& x, Site site) { return Unary("sign", x, site); }
Variable Sqrt(const Variable& x, Site site) { return Unary("sqrt", x, site); }
Variable Square(const Variable& x, Site site) { return Unary("square", x, site); }
Variable Tanh(const Variable& x, Site site) { return Unary("tanh", x, site); }

Variable LeakyRelu(const Variable& x, float alpha, Site site) {
  return Unary("leaky_relu", x, site, {{"alpha", alpha}});
}

Variable HardSigmoid(const Variable& x, float slope, float offset, Site site) {
  return Unary("hard_sigmoid", x, site, {{"slope", slope}, {"offset", offset}});
}

Variable Softmax(const Variable& x, int32_t axis, Site site) {
  return Unary("softmax", x, site, {{"axis", axis}});
}

}  // namespace skiff::layers
