#include "framework/plan/row_batch.h"

#include <algorithm>
#include <vector>

#include "framework/op/op_def.h"

namespace skiff {
namespace {

int64_t BytesOfRow(const PlanValue& value) {
  Shape shape = value.meta.shape;
  shape[0] = 1;
  return StorageBytes(shape, value.meta.dtype, value.meta.layout);
}

}  // namespace

int64_t MostBatchRows(const Plan& body, const Instruction& instruction) {
  constexpr int64_t kMostRows = 512;
  const RowRule& rule = *instruction.def->rows;
  int64_t row_bytes = 0;
  int64_t shared_bytes = 0;
  int64_t sum_bytes = 0;
  for (const SlotDef& slot : instruction.def->inputs) {
    for (size_t i = 0; i < instruction.op->Input(slot.name).size(); ++i) {
      const ValueId value = instruction.InputIn(slot.name, i);
      if (!value) continue;
      const bool are_rows = IsOneOf(slot.name, rule.inputs);
      (are_rows ? row_bytes : shared_bytes) +=
          are_rows ? BytesOfRow(body[value]) : StorageBytes(body[value]);
    }
  }
  for (const SlotDef& slot : instruction.def->outputs) {
    for (size_t i = 0; i < instruction.op->Output(slot.name).size(); ++i) {
      const ValueId value = instruction.OutputIn(slot.name, i);
      if (!value) continue;
      const bool are_rows = IsOneOf(slot.name, rule.outputs);
      (are_rows ? row_bytes : sum_bytes) +=
          are_rows ? BytesOfRow(body[value]) : StorageBytes(body[value]);
    }
  }
  return std::min(kMostRows,
                  2 * std::max(shared_bytes, sum_bytes) / std::max<int64_t>(1, row_bytes));
}

}  // namespace skiff
