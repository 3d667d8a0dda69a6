#include "framework/analysis/argument_places.h"

#include <string>

#include "framework/base/error.h"
#include "framework/op/host_slots.h"

namespace skiff {
namespace {

std::vector<Place> PlacesOf(const Instruction& instruction, const std::vector<SlotDef>& slots,
                            const std::vector<std::string>& (Op::*arguments)(std::string_view)
                                const,
                            size_t count) {
  std::vector<Place> places;
  if (instruction.kind == InstructionKind::kOp) {
    for (const SlotDef& slot : slots) {
      places.insert(places.end(), (instruction.op->*arguments)(slot.name).size(),
                    PlaceOfSlot(*instruction.def, *instruction.op, slot.name, instruction.place));
    }
  }
  places.resize(count, instruction.place);
  return places;
}

// Arrays are on the CPU wherever their ops are.
void Check(const Plan& plan, const Instruction& instruction, ValueId value, Place expected) {
  if (!value || plan[value].meta.is_array) return;
  SKIFF_ENFORCE(plan[value].place == expected, kFailedPrecondition, "\"", plan[value].name,
                "\" is on ", plan[value].place, ": ", instruction.Name(), " needs it on ",
                expected);
}

}  // namespace

std::vector<Place> InputPlaces(const Instruction& instruction) {
  return PlacesOf(instruction, instruction.def->inputs, &Op::Input, instruction.inputs.size());
}

std::vector<Place> OutputPlaces(const Instruction& instruction) {
  return PlacesOf(instruction, instruction.def->outputs, &Op::Output, instruction.outputs.size());
}

void CheckPlaces(const Plan& plan) {
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kCopy) continue;
    const std::vector<Place> inputs = InputPlaces(instruction);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (instruction.reads_data[i]) Check(plan, instruction, instruction.inputs[i], inputs[i]);
    }
    const std::vector<Place> outputs = OutputPlaces(instruction);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Check(plan, instruction, instruction.outputs[i], outputs[i]);
    }
  }
}

}  // namespace skiff
