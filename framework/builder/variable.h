// A variable of a program, as layer functions take and return it.
//
// A Variable is a handle: the block and the name. The block outlives it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/program.h"

namespace skiff {

class Variable {
 public:
  Variable() = default;  // refers to nothing
  Variable(Block* block, std::string name) : block_(block), name_(std::move(name)) {}

  bool defined() const { return block_ != nullptr; }
  Block* block() const { return block_; }
  const std::string& name() const { return name_; }
  // Implicit, so that a Variable can be used where a variable's name is expected, as in lists of
  // fetches.
  operator const std::string&() const { return name_; }

  // Returns the description in the program. Throws an Error: kInvalidArgument if the variable is
  // undefined, kNotFound if it was removed.
  Var& var() const;
  const std::vector<int64_t>& dims() const { return var().dims; }
  DType dtype() const { return var().dtype; }
  // No gradient flows through a variable marked so. Returns the variable.
  const Variable& StopGradient(bool stop = true) const;

 private:
  Block* block_ = nullptr;
  std::string name_;
};

// An operand of the operators below. Remembers the source location of the expression.
struct LocatedVariable {
  // NOLINTNEXTLINE(google-explicit-constructor): that it is implicit is its purpose.
  LocatedVariable(const Variable& variable,
                  std::source_location site = std::source_location::current())
      : variable(variable), site(site) {}

  const Variable& variable;
  std::source_location site;
};

// elementwise_add, _sub, _mul and _div, where the shape of one operand matches trailing dims of the
// other; with a number, one `scale` op (`number / x` divides a constant).
Variable operator+(const LocatedVariable& x, const LocatedVariable& y);
Variable operator-(const LocatedVariable& x, const LocatedVariable& y);
Variable operator*(const LocatedVariable& x, const LocatedVariable& y);
Variable operator/(const LocatedVariable& x, const LocatedVariable& y);
Variable operator+(const LocatedVariable& x, double number);
Variable operator-(const LocatedVariable& x, double number);
Variable operator*(const LocatedVariable& x, double number);
Variable operator/(const LocatedVariable& x, double number);
Variable operator+(double number, const LocatedVariable& x);
Variable operator-(double number, const LocatedVariable& x);
Variable operator*(double number, const LocatedVariable& x);
Variable operator/(double number, const LocatedVariable& x);
Variable operator-(const LocatedVariable& x);

// less_than and its like, element by element: bools, with broadcasting. A number is taken in the
// dtype of x. There is no ==, which would seem to ask whether two handles are of one variable:
// layers::Equal compares elements.
Variable operator<(const LocatedVariable& x, const LocatedVariable& y);
Variable operator<=(const LocatedVariable& x, const LocatedVariable& y);
Variable operator>(const LocatedVariable& x, const LocatedVariable& y);
Variable operator>=(const LocatedVariable& x, const LocatedVariable& y);
Variable operator<(const LocatedVariable& x, double number);
Variable operator<=(const LocatedVariable& x, double number);
Variable operator>(const LocatedVariable& x, double number);
Variable operator>=(const LocatedVariable& x, double number);
Variable operator<(double number, const LocatedVariable& x);
Variable operator<=(double number, const LocatedVariable& x);
Variable operator>(double number, const LocatedVariable& x);
Variable operator>=(double number, const LocatedVariable& x);

}  // namespace skiff
