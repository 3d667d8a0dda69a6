#include "framework/builder/variable_operators.h"

#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/number_like.h"

namespace skiff {

using internal::LocatedVariable;
namespace {

Variable ScaleBy(const LocatedVariable& x, double factor, double bias) {
  return layers::Scale(
      x.variable, {.scale = static_cast<float>(factor), .bias = static_cast<float>(bias)}, x.site);
}

}  // namespace

Variable operator+(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::ElementwiseAdd(x.variable, y.variable, {}, x.site);
}
Variable operator-(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::ElementwiseSub(x.variable, y.variable, {}, x.site);
}
Variable operator*(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::ElementwiseMul(x.variable, y.variable, {}, x.site);
}
Variable operator/(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::ElementwiseDiv(x.variable, y.variable, {}, x.site);
}
Variable operator+(const LocatedVariable& x, double number) { return ScaleBy(x, 1.0, number); }
Variable operator-(const LocatedVariable& x, double number) { return ScaleBy(x, 1.0, -number); }
Variable operator*(const LocatedVariable& x, double number) { return ScaleBy(x, number, 0.0); }
// One `scale` op for all operations with a number. A division multiplies by the rounded reciprocal.
Variable operator/(const LocatedVariable& x, double number) {
  return ScaleBy(x, 1.0 / number, 0.0);
}
Variable operator+(double number, const LocatedVariable& x) { return ScaleBy(x, 1.0, number); }
Variable operator-(double number, const LocatedVariable& x) { return ScaleBy(x, -1.0, number); }
Variable operator*(double number, const LocatedVariable& x) { return ScaleBy(x, number, 0.0); }
Variable operator/(double number, const LocatedVariable& x) {
  return layers::ElementwiseDiv(NumberLike(x.variable, number, x.site), x.variable, {}, x.site);
}
Variable operator-(const LocatedVariable& x) { return ScaleBy(x, -1.0, 0.0); }

Variable operator<(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::LessThan(x.variable, y.variable, x.site);
}
Variable operator<=(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::LessEqual(x.variable, y.variable, x.site);
}
Variable operator>(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::GreaterThan(x.variable, y.variable, x.site);
}
Variable operator>=(const LocatedVariable& x, const LocatedVariable& y) {
  return layers::GreaterEqual(x.variable, y.variable, x.site);
}
Variable operator<(const LocatedVariable& x, double number) {
  return layers::LessThan(x.variable, number, x.site);
}
Variable operator<=(const LocatedVariable& x, double number) {
  return layers::LessEqual(x.variable, number, x.site);
}
Variable operator>(const LocatedVariable& x, double number) {
  return layers::GreaterThan(x.variable, number, x.site);
}
Variable operator>=(const LocatedVariable& x, double number) {
  return layers::GreaterEqual(x.variable, number, x.site);
}
Variable operator<(double number, const LocatedVariable& x) {
  return layers::GreaterThan(x.variable, number, x.site);
}
Variable operator<=(double number, const LocatedVariable& x) {
  return layers::GreaterEqual(x.variable, number, x.site);
}
Variable operator>(double number, const LocatedVariable& x) {
  return layers::LessThan(x.variable, number, x.site);
}
Variable operator>=(double number, const LocatedVariable& x) {
  return layers::LessEqual(x.variable, number, x.site);
}

}  // namespace skiff
