#include "tests/harness/case_op.h"

#include <utility>

#include "framework/base/error.h"

namespace skiff::harness {

std::string VariableName(const std::string& slot, size_t i) { return StrCat(slot, ".", i); }

Op MakeOp(const OpCase& op_case) {
  const auto names = [](const std::string& slot, size_t count) {
    std::vector<std::string> variables;
    for (size_t i = 0; i < count; ++i) variables.push_back(VariableName(slot, i));
    return variables;
  };
  Op op(op_case.type);
  for (const auto& [slot, arrays] : op_case.inputs) op.SetInput(slot, names(slot, arrays.size()));
  for (const auto& [slot, count] : op_case.outputs) {
    op.SetOutput(slot, names(slot, static_cast<size_t>(count)));
  }
  op.attrs = op_case.attrs;
  // Random ops derive their numbers from it.
  op.id = 7;
  return op;
}

NamedTensors MakeInputs(const OpCase& op_case, DType dtype) {
  NamedTensors inputs;
  for (const auto& [slot, arrays] : op_case.inputs) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      inputs[VariableName(slot, i)] = ToTensor(arrays[i], DTypeIn(arrays[i], dtype));
    }
  }
  return inputs;
}

std::string CaseName(const OpCase& op_case) { return op_case.type + "/" + op_case.name; }

}  // namespace skiff::harness
