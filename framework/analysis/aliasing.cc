#include "framework/analysis/aliasing.h"

#include "framework/analysis/fused_blocks.h"

namespace skiff {

InputOutputPairs InPlacePairs(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kFused) return PlaceFused(plan, instruction).in_place;
  return InPlacePairsOfOp(plan, instruction);
}

bool MayShareStorage(const PlanValue& a, const PlanValue& b) {
  const auto is_free = [](const PlanValue& value) {
    return value.storage == Storage::kArena && !value.is_exclusive;
  };
  return a.place == b.place && StorageBytes(a) == StorageBytes(b) && a.meta.dtype == b.meta.dtype &&
         a.meta.layout == b.meta.layout && is_free(a) && is_free(b);
}

}  // namespace skiff
