// A variable of a program, as layer functions take and return it.
//
// A Variable is a handle: the block and the name. The block outlives it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/api/dtype.h"
#include "framework/ir/api/program.h"

namespace skiff {

class Variable {
 public:
  Variable() = default;  // refers to nothing
  Variable(ir::Block* block, std::string name) : block_(block), name_(std::move(name)) {}

  bool defined() const { return block_ != nullptr; }
  ir::Block* block() const { return block_; }
  const std::string& name() const { return name_; }
  // Implicit, so that a Variable can be used where a variable's name is expected, as in lists of
  // fetches and in Scope::Get.
  operator const std::string&() const { return name_; }
  operator std::string_view() const { return name_; }

  // Returns the description in the program. Throws an Error: kInvalidArgument if the variable is
  // undefined, kNotFound if it was removed.
  ir::Var& var() const;
  const std::vector<int64_t>& dims() const;
  DType dtype() const;
  // No gradient flows through a variable marked so. Returns the variable.
  const Variable& StopGradient(bool stop = true) const;

 private:
  ir::Block* block_ = nullptr;
  std::string name_;
};

namespace internal {

// An operand of the operators below. Remembers the source location of the expression.
struct LocatedVariable {
  // NOLINTNEXTLINE(google-explicit-constructor): that it is implicit is its purpose.
  LocatedVariable(const Variable& variable,
                  std::source_location site = std::source_location::current())
      : variable(variable), site(site) {}

  const Variable& variable;
  std::source_location site;
};

}  // namespace internal

// elementwise_add, _sub, _mul and _div, where the shape of one operand matches trailing dims of the
// other; with a number, one `scale` op (`number / x` divides a constant).
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
