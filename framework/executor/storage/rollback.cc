// Most ops can't fail once their shapes are checked. Only those that examine data (labels, ids)
// can, so only scope variables written up to the last such op need copies. In a usual training step
// the loss checks the labels before the first update, and the copies are a few running statistics.
#include "framework/executor/storage/rollback.h"

#include <algorithm>
#include <set>
#include <string>

#include "framework/analysis/dependencies.h"

namespace skiff {
namespace {

// Returns whether `earlier` would have failed on any data that `later` refuses: see
// OpDef::data_checked_by.
bool HasCheckedFor(const Instruction& later, const Instruction& earlier) {
  if (earlier.kind != InstructionKind::kOp) return false;
  // The same op, run again by recomputation.
  if (earlier.op == later.op && earlier.inputs == later.inputs) return true;
  if (earlier.def->type != later.def->data_checked_by) return false;
  const bool same_values = std::ranges::all_of(later.def->inputs, [&](const SlotDef& slot) {
    const ValueId value = later.InputIn(slot.name);
    if (earlier.def->FindInput(slot.name) != nullptr) return earlier.InputIn(slot.name) == value;
    return earlier.def->FindOutput(slot.name) == nullptr || earlier.OutputIn(slot.name) == value;
  });
  return same_values && std::ranges::all_of(later.def->attrs, [&](const AttrDef& attr) {
           const AttrDef* of_earlier = earlier.def->FindAttr(attr.name);
           if (of_earlier == nullptr) return false;
           const Attribute* a = EffectiveAttr(*later.op, attr);
           const Attribute* b = EffectiveAttr(*earlier.op, *of_earlier);
           return a != nullptr && b != nullptr && SameAttribute(*a, *b);
         });
}

// Returns whether the instruction may fail because of its data, which no earlier one has checked.
bool MayRefuseData(const std::vector<Instruction>& instructions, size_t index) {
  const Instruction& instruction = instructions[index];
  if (!ChecksData(instruction)) return false;
  return std::none_of(
      instructions.begin(), instructions.begin() + static_cast<ptrdiff_t>(index),
      [&](const Instruction& earlier) { return HasCheckedFor(instruction, earlier); });
}

}  // namespace

Rollback::Rollback(const Plan& plan, const BoundValues& values, bool is_last_segment,
                   DeviceLink* link)
    : values_(values), link_(*link), end_(plan.instructions.size()) {
  // Past the last instruction that may fail, nothing needs a copy.
  while (is_last_segment && end_ > 0 && !MayRefuseData(plan.instructions, end_ - 1)) --end_;
  std::set<std::string> saved;
  for (size_t i = 0; i < end_; ++i) {
    for (const ValueId output : plan.instructions[i].outputs) {
      if (!output || plan[output].storage != Storage::kScope) continue;
      // A run begins with empty arrays.
      if (plan[output].meta.is_array) continue;
      const std::string& name = plan[output].name;
      // A variable may be written twice; Save copies it once, before the run.
      if (!saved.insert(name).second) continue;
      Tensor* live = values.Of(output);
      copies_.push_back({live, Tensor(live->shape(), live->dtype(), live->place())});
    }
  }
}

void Rollback::Save() {
  for (Copy& copy : copies_) {
    values_.Await(*copy.live);
    // On a device after the work that is in its stream: the run before may still write it.
    link_.Copy(*copy.live, &copy.saved);
  }
}

void Rollback::Restore() const {
  for (const Copy& copy : copies_) {
    try {
      values_.Await(*copy.live);
    } catch (const Error&) {
      // The run has failed already and throws its own Error. What a background kernel left half
      // written is overwritten here, and so must be the variables after it.
    }
    try {
      link_.Copy(copy.saved, copy.live);
    } catch (const Error&) {
      // A device that has failed takes no more copies. Variables on the CPU come back all the same.
    }
  }
}

int64_t Rollback::bytes() const {
  int64_t bytes = 0;
  for (const Copy& copy : copies_) bytes += copy.saved.byte_count();
  return bytes;
}

}  // namespace skiff
