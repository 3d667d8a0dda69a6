// From a case to an op and its inputs.
#pragma once

#include <string>

#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// "X.0": the variable in position `i` of a slot.
std::string VariableName(const std::string& slot, size_t i);

Op MakeOp(const OpCase& op_case);

// The inputs by variable, in a run of `dtype`.
NamedTensors MakeInputs(const OpCase& op_case, DType dtype);

// "relu/odd_size"
std::string CaseName(const OpCase& op_case);

}  // namespace skiff::harness
