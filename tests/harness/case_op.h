// Makes an op and its inputs from a case.
#pragma once

#include <string>

#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns the name of the variable at position `i` of a slot: "X.0".
std::string VariableName(const std::string& slot, size_t i);

Op MakeOp(const OpCase& op_case);

// Returns the inputs by variable, for a run of `dtype`.
NamedTensors MakeInputs(const OpCase& op_case, DType dtype);

// Returns "<op type>/<case name>": "relu/odd_size".
std::string CaseName(const OpCase& op_case);

}  // namespace skiff::harness
