// Inputs with more rows (dim 0) than those of a case, to prepare kernels that then run on the case.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"

namespace skiff::harness {

struct WiderInputs {
  // Zeros; the LoDs have more sequences, more rows, or both.
  NamedTensors inputs;
  std::string what;  // "12 rows instead of 6"
};

// Returns every way to widen the inputs that the op accepts and that changes no dim of an output
// but the first: all counts of LoDs at once; by count, all inputs that have so many rows or
// sequences; and each input alone.
std::vector<WiderInputs> InputsWithMoreRows(const OpDef& def, const Op& op,
                                            const NamedTensors& inputs);

}  // namespace skiff::harness
