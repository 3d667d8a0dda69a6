// Numbers that a run computes from others, such as i + 1 in a loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "framework/builder/variable.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// The one whole number of the variable `base`, plus `by`.
struct ShiftedNumber {
  std::string base;
  int64_t by = 0;
};

// Returns the number from which the ops of the block compute the only number of x, by additions of
// constants and changes of shape. `known` returns the numbers of a variable, nullptr if nobody
// knows them.
ShiftedNumber ShiftedNumberOf(const Variable& x,
                              const std::function<const Tensor*(const std::string&)>& known);

}  // namespace skiff
