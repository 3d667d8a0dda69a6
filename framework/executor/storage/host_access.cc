#include "framework/executor/storage/host_access.h"

#include <algorithm>

namespace skiff {
namespace {

// Returns whether the host itself reads or writes values in the arena to run the instruction, or to
// issue it to the device.
bool UsesHostArena(const Plan& plan, const Instruction& instruction) {
  if (RunsOnHost(plan, instruction)) return true;
  if (instruction.kind == InstructionKind::kCopy) return false;
  const auto is_there = [&](ValueId value) {
    return value && plan[value].place.is_cpu() && plan[value].storage == Storage::kArena;
  };
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (instruction.reads_data[i] && is_there(instruction.inputs[i])) return true;
  }
  return std::ranges::any_of(instruction.outputs, is_there);
}

}  // namespace

bool RunsOnHost(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kCopy) return instruction.place.is_cpu();
  return plan[instruction.inputs[0]].place.is_cpu() && plan[instruction.outputs[0]].place.is_cpu();
}

HostAccess::HostAccess(const Plan& plan, const BoundValues& values, DeviceLink* link)
    : values_(values), link_(*link) {
  if (!link->has_device()) return;
  for (const Instruction& instruction : plan.instructions) {
    uses_.push_back({UsesHostArena(plan, instruction), ReadsOf(plan, instruction)});
  }
}

std::vector<const Tensor*> HostAccess::ReadsOf(const Plan& plan,
                                               const Instruction& instruction) const {
  std::vector<const Tensor*> reads;
  // The device's own kernels order such reads and writes themselves, if the host reads nothing when
  // it issues them.
  const bool is_of_device = instruction.kind == InstructionKind::kOp && !instruction.place.is_cpu();
  if (is_of_device && std::ranges::none_of(instruction.def->inputs, &SlotDef::on_host)) {
    return reads;
  }
  for (const ValueId input : instruction.inputs) {
    if (!input || plan[input].storage != Storage::kScope || !plan[input].place.is_cpu()) continue;
    reads.push_back(values_.Of(input));
  }
  return reads;
}

void HostAccess::Await(const Use& use) const {
  if (use.uses_arena || !use.reads.empty()) link_.AwaitHost();
  // A kernel may still write them in the background.
  for (const Tensor* read : use.reads) values_.Await(*read);
}

}  // namespace skiff
