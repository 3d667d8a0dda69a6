#include "framework/analysis/op_aliasing.h"

#include <algorithm>

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

InputOutputPairs InPlacePairsOfOp(const Plan& plan, const Instruction& instruction) {
  // A copy changes the layout, and a reorder can't work in place. A loop reads some inputs after it
  // has written some outputs.
  if (instruction.kind != InstructionKind::kOp) return {};
  return PairsOf(plan, instruction, instruction.def->in_place);
}

InputOutputPairs ViewPairs(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kOp) return {};
  return PairsOf(plan, instruction, instruction.def->views);
}

}  // namespace skiff
