// An op with several kernels, for tests of choosing among kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_context.h"
#include "framework/op/registry.h"

namespace skiff::candidates {

// shift: Out = X + amount, with X float32 of any shape, an optional input Filter and an optional
// output Copy. Its kernels, each adding something to tell it by:
//   low     priority 1, adds 1
//   high    priority 2, adds 2: what the rule takes
//   odd     priority 3, adds 3, accepts rows of odd length only and doesn't pay
//   plain   a reference, adds 4
// shift_random, shift_checked and shift_effect are the same, but draw numbers, check X and have a
// side effect.
void RegisterShift(OpRegistry& registry);

// The context of an op of either type. `row`: X is [2, row].
class ShiftOp {
 public:
  ShiftOp(const OpRegistry& registry, int64_t row, const std::string& type = "shift");

  Op& op() { return op_; }
  OpContext Context() const;
  TensorMeta x;  // of all arguments
  // Of the inputs, if not that of x.
  std::optional<Layout> in_layout;

 private:
  const OpRegistry& registry_;
  Op op_;
};

}  // namespace skiff::candidates
