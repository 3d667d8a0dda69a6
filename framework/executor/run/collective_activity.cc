#include "framework/executor/run/collective_activity.h"

#include <array>
#include <charconv>

#include "framework/base/str_cat.h"

namespace skiff {
namespace {

constexpr size_t kMostDigits = 20;  // of a step

std::string TextOf(const Plan& plan, const Instruction& instruction) {
  for (const ValueId output : instruction.outputs) {
    if (output) return StrCat(instruction.Name(), " of ", plan[output].name, ", step ");
  }
  return StrCat(instruction.Name(), ", step ");
}

}  // namespace

CollectiveActivity::CollectiveActivity(const Plan& plan, const Instruction& instruction,
                                       Communicator* communicator)
    : communicator_(*communicator), text_(TextOf(plan, instruction)), without_step_(text_.size()) {
  // A step allocates no memory.
  text_.reserve(without_step_ + kMostDigits);
}

const std::string* CollectiveActivity::TextAt(uint64_t step) {
  std::array<char, kMostDigits> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), step).ptr;
  text_.resize(without_step_);
  text_.append(digits.begin(), end);
  return &text_;
}

}  // namespace skiff
