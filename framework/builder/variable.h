// A variable of a program, as layer functions take and return it.
//
// A Variable is a handle: the block and the name. The block outlives it.
#pragma once

#include <cstdint>
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

}  // namespace skiff
