// The values that a forward op had for the variables of its gradient op: other ops of a loop's body
// may have overwritten the variables before or after. Internal to framework/executor.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/plan/plan.h"

namespace skiff {

// The ops of a forward block, as instructions of a plan.
class ForwardValues {
 public:
  // Knows the instructions that the plan has by now. More may follow. The plan must outlive the
  // object.
  explicit ForwardValues(const Plan& plan);

  // Takes a gradient op, by its place in the gradient block. Returns, for each name that the
  // gradient op reads, the value that its forward op has under the same name; nothing if there is
  // no forward op, as for ops that only compute with gradients. Leaves out arrays, which have one
  // storage for all times, and running statistics, which have one name before and after. Throws an
  // Error (kUnimplemented) if several forward ops have the same variables, other ops overwrite
  // these in between, and there are not as many gradient ops; or if the forward op has overwritten
  // a variable that the gradient op reads as it was before and after.
  std::map<std::string, ValueId> Of(const Block& gradient_block, size_t position) const;

 private:
  std::map<std::string, ValueId> ValuesOf(const Instruction& forward, const Op& gradient) const;

  const Plan& plan_;
  std::map<std::string, std::vector<size_t>, std::less<>> by_type_;  // places of instructions
};

}  // namespace skiff
