#include "framework/plan/loop.h"

#include "framework/base/element_count.h"
#include "memory/allocator.h"

namespace skiff {

bool IsLoopBoundary(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOp && instruction.def->type == "loop_boundary";
}

int64_t StackSlotBytes(const PlanValue& value) {
  return RoundUp(StorageBytes(value.meta.shape, value.meta.dtype, value.meta.layout),
                 kBufferAlignment);
}

}  // namespace skiff
