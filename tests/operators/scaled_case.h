// Cases with huge and tiny inputs, whose squares float32 doesn't hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

inline Array Scaled(Array array, double factor) {
  for (double& value : array.values) value *= factor;
  return array;
}

// Returns the case with X multiplied by a factor, without gradients, whose finite differences would
// be nothing beside X. `unheld`: outputs that float32 doesn't hold.
inline OpCase WithScaledX(OpCase op_case, const std::string& suffix, double factor,
                          const std::vector<std::string>& unheld = {}) {
  op_case.name += "_" + suffix;
  op_case.inputs["X"][0] = Scaled(std::move(op_case.inputs["X"][0]), factor);
  op_case.gradients.clear();
  op_case.reference = [reference = std::move(op_case.reference), unheld](const Arrays& inputs) {
    Arrays expected = reference(inputs);
    for (const std::string& slot : unheld) expected.erase(slot);
    return expected;
  };
  return op_case;
}

}  // namespace skiff::harness
