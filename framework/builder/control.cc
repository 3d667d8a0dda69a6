#include "framework/builder/control.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/number_like.h"

namespace skiff::layers {
namespace {

Variable Finish(const LayerCall& call, Op op) {
  const Variable out = call.AppendFor(std::move(op));
  out.StopGradient();
  return out;
}

Variable Predicate(const char* type, const Variable& x, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)});
  return Finish(call, std::move(op));
}

Variable Predicate(const char* type, const Variable& x, const Variable& y, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  return Finish(call, std::move(op));
}

}  // namespace

Variable Equal(const Variable& x, const Variable& y, Site site) {
  return Predicate("equal", x, y, site);
}
Variable NotEqual(const Variable& x, const Variable& y, Site site) {
  return Predicate("not_equal", x, y, site);
}
Variable LessThan(const Variable& x, const Variable& y, Site site) {
  return Predicate("less_than", x, y, site);
}
Variable LessEqual(const Variable& x, const Variable& y, Site site) {
  return Predicate("less_equal", x, y, site);
}
Variable GreaterThan(const Variable& x, const Variable& y, Site site) {
  return Predicate("greater_than", x, y, site);
}
Variable GreaterEqual(const Variable& x, const Variable& y, Site site) {
  return Predicate("greater_equal", x, y, site);
}
Variable Equal(const Variable& x, double y, Site site) {
  return Equal(x, NumberLike(x, y, site), site);
}
Variable NotEqual(const Variable& x, double y, Site site) {
  return NotEqual(x, NumberLike(x, y, site), site);
}
Variable LessThan(const Variable& x, double y, Site site) {
  return LessThan(x, NumberLike(x, y, site), site);
}
Variable LessEqual(const Variable& x, double y, Site site) {
  return LessEqual(x, NumberLike(x, y, site), site);
}
Variable GreaterThan(const Variable& x, double y, Site site) {
  return GreaterThan(x, NumberLike(x, y, site), site);
}
Variable GreaterEqual(const Variable& x, double y, Site site) {
  return GreaterEqual(x, NumberLike(x, y, site), site);
}
Variable IsNan(const Variable& x, Site site) { return Predicate("isnan_v2", x, site); }
Variable IsInf(const Variable& x, Site site) { return Predicate("isinf_v2", x, site); }
Variable ElementwiseIsFinite(const Variable& x, Site site) {
  return Predicate("isfinite_v2", x, site);
}
Variable LogicalAnd(const Variable& x, const Variable& y, Site site) {
  return Predicate("logical_and", x, y, site);
}
Variable LogicalOr(const Variable& x, const Variable& y, Site site) {
  return Predicate("logical_or", x, y, site);
}
Variable LogicalXor(const Variable& x, const Variable& y, Site site) {
  return Predicate("logical_xor", x, y, site);
}

Variable LogicalNot(const Variable& x, Site site) { return Predicate("logical_not", x, site); }
Variable BitwiseAnd(const Variable& x, const Variable& y, Site site) {
  return Predicate("bitwise_and", x, y, site);
}
Variable BitwiseOr(const Variable& x, const Variable& y, Site site) {
  return Predicate("bitwise_or", x, y, site);
}
Variable BitwiseXor(const Variable& x, const Variable& y, Site site) {
  return Predicate("bitwise_xor", x, y, site);
}
Variable BitwiseNot(const Variable& x, Site site) { return Predicate("bitwise_not", x, site); }

Variable IsEmpty(const Variable& x, Site site) { return Predicate("is_empty", x, site); }

Variable Increment(const Variable& x, float step, Site site) {
  const LayerCall call("increment", "", site);
  Op op("increment");
  // In place: counters are persistables, whose next value must be in the same variable.
  op.SetInput("X", {call.CheckedName(x)}).SetOutput("Out", {x.name()}).SetAttr("step", step);
  call.Append(std::move(op));
  return x;
}

}  // namespace skiff::layers
