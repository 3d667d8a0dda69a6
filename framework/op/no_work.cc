#include "framework/op/no_work.h"

#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool IsEmpty(const TensorMeta& meta) {
  return meta.shape.is_known() && StorageBytes(meta.shape, meta.dtype, meta.layout) == 0;
}

// Returns whether the data of an input may make a kernel refuse to run. An empty input holds
// nothing to refuse.
bool MayRefuseData(const OpContext& context) {
  for (const SlotDef& slot : context.def().inputs) {
    if (!slot.checks_data) continue;
    for (size_t i = 0; i < context.InputCount(slot.name); ++i) {
      const int index = context.InputIndex(slot.name, i);
      if (index >= 0 && !IsEmpty(context.inputs()[static_cast<size_t>(index)])) return true;
    }
  }
  return false;
}

}  // namespace

bool HasNoWork(const OpContext& context) {
  const Op& op = context.op();
  if (context.def().has_side_effect || context.def().collective || !op.SubBlocks().empty() ||
      MayRefuseData(context)) {
    return false;
  }
  const std::vector<std::string> names = OutputOrder(context.def(), op);
  bool has_output = false;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kEmptyVarName) continue;
    // An element without elements of its own is one all the same.
    if (context.outputs()[i].is_array) return false;
    // Such an op has work even if all inputs are empty: the sum of nothing is 0.
    if (!IsEmpty(context.outputs()[i])) return false;
    has_output = true;
  }
  // Without any output, the kernel reports the one that it misses.
  return has_output;
}

}  // namespace skiff
