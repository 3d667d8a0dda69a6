#include "framework/analysis/aliasing.h"

#include <algorithm>

#include "framework/analysis/fused_blocks.h"

namespace skiff {
namespace {

// Returns the pairs of slots that the op has.
InputOutputPairs PairsOf(const Plan& plan, const Instruction& instruction,
                         const std::vector<std::pair<StaticText, StaticText>>& slots) {
  InputOutputPairs pairs;
  if (slots.empty()) return pairs;
  const PrepareContext context = ContextOf(plan, instruction);
  for (const auto& [input, output] : slots) {
    // Slots with several arguments pair up by position.
    const size_t count = std::min(context.InputCount(input), context.OutputCount(output));
    for (size_t i = 0; i < count; ++i) {
      const int from = context.InputIndex(input, i);
      const int to = context.OutputIndex(output, i);
      if (from >= 0 && to >= 0) pairs.emplace_back(from, to);
    }
  }
  return pairs;
}

}  // namespace

InputOutputPairs InPlacePairs(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kFused) return PlaceFused(plan, instruction).in_place;
  // A copy changes the layout, and a reorder can't work in place. A loop reads some inputs after it
  // has written some outputs.
  if (instruction.kind != InstructionKind::kOp) return {};
  return PairsOf(plan, instruction, instruction.def->in_place);
}

InputOutputPairs ViewPairs(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kOp) return {};
  return PairsOf(plan, instruction, instruction.def->views);
}

bool MayShareStorage(const PlanValue& a, const PlanValue& b) {
  const auto is_free = [](const PlanValue& value) {
    return value.storage == Storage::kArena && !value.is_exclusive;
  };
  return a.place == b.place && StorageBytes(a) == StorageBytes(b) && a.meta.dtype == b.meta.dtype &&
         a.meta.layout == b.meta.layout && is_free(a) && is_free(b);
}

}  // namespace skiff
