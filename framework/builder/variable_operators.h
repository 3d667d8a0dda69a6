// Arithmetic and comparisons of variables, as operators.
#pragma once

#include <source_location>

#include "framework/builder/variable.h"

namespace skiff {

namespace internal {

// An operand of the operators below. Remembers the source location of the expression.
struct LocatedVariable {
  // NOLINTNEXTLINE(google-explicit-constructor): the conversion is meant to be implicit.
  LocatedVariable(const Variable& variable,
                  std::source_location site = std::source_location::current())
      : variable(variable), site(site) {}

  const Variable& variable;
  std::source_location site;
};

}  // namespace internal

// elementwise_add, _sub, _mul and _div, where the shape of either operand matches trailing dims of
// the other; with a number, one `scale` op (`number / x` divides a constant).
Variable operator+(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator-(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator*(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator/(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator+(const internal::LocatedVariable& x, double number);
Variable operator-(const internal::LocatedVariable& x, double number);
Variable operator*(const internal::LocatedVariable& x, double number);
Variable operator/(const internal::LocatedVariable& x, double number);
Variable operator+(double number, const internal::LocatedVariable& x);
Variable operator-(double number, const internal::LocatedVariable& x);
Variable operator*(double number, const internal::LocatedVariable& x);
Variable operator/(double number, const internal::LocatedVariable& x);
Variable operator-(const internal::LocatedVariable& x);

// less_than and its like, element by element: bools, with broadcasting. A number is taken in the
// dtype of x. There is no ==, which would seem to ask whether two handles are of one variable:
// layers::Equal compares elements.
Variable operator<(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator<=(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator>(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator>=(const internal::LocatedVariable& x, const internal::LocatedVariable& y);
Variable operator<(const internal::LocatedVariable& x, double number);
Variable operator<=(const internal::LocatedVariable& x, double number);
Variable operator>(const internal::LocatedVariable& x, double number);
Variable operator>=(const internal::LocatedVariable& x, double number);
Variable operator<(double number, const internal::LocatedVariable& x);
Variable operator<=(double number, const internal::LocatedVariable& x);
Variable operator>(double number, const internal::LocatedVariable& x);
Variable operator>=(double number, const internal::LocatedVariable& x);

}  // namespace skiff
