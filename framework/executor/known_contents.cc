#include "framework/executor/known_contents.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/evaluation.h"

namespace skiff {
namespace {

std::string PlaceOf(const Instruction& instruction) {
  return DescribeOp(*instruction.op, instruction.block, instruction.position);
}

// Returns whether the contents of an input must be known before the op is computed.
std::vector<bool> NeedsContents(const Instruction& instruction) {
  std::vector<bool> needs;
  if (instruction.kind == InstructionKind::kCopy) return {true};
  for (const SlotDef& slot : instruction.def->inputs) {
    needs.insert(needs.end(), instruction.op->Input(slot.name).size(), !slot.shape_only);
  }
  return needs;
}

}  // namespace

bool HaveSameElements(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.byte_count() == 0 ||
          std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.byte_count())) == 0);
}

// Works without recursion: a chain of constants may be long. First looks for what the value needs,
// from the last instruction to the first, which is the reverse of the order in which it computes.
KnownContents::Contents KnownContents::Find(ValueId value, std::string* why) {
  if (plan_[value].meta.contents != nullptr) return plan_[value].meta.contents;
  std::set<ValueId> needed = {value};
  std::vector<size_t> makers;
  for (size_t i = plan_.instructions.size(); i > 0 && !needed.empty(); --i) {
    const Instruction& instruction = plan_.instructions[i - 1];
    size_t made = 0;
    for (const ValueId output : instruction.outputs) made += output ? needed.erase(output) : 0;
    if (made == 0) continue;
    if (!MayCompute(instruction)) {
      *why = StrCat("what ", PlaceOf(instruction), " makes");
      return nullptr;
    }
    makers.push_back(i - 1);
    const std::vector<bool> needs = NeedsContents(instruction);
    for (size_t k = 0; k < needs.size(); ++k) {
      const ValueId input = instruction.inputs[k];
      if (needs[k] && input && plan_[input].meta.contents == nullptr) needed.insert(input);
    }
  }
  // What no instruction makes comes from outside.
  for (const ValueId outside : needed) {
    PlanValue& found = plan_[outside];
    const bool is_fed = found.storage == Storage::kFeed;
    if (is_fed && of_feed_) {
      found.meta.contents = of_feed_(outside, why);
    } else {
      *why = is_fed ? StrCat("feed \"", found.name, "\"")
                    : StrCat("variable \"", found.name, "\" of the scope");
    }
    if (plan_[outside].meta.contents == nullptr) return nullptr;
  }
  for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) {
    if (!Compute(plan_.instructions[*maker], why)) return nullptr;
  }
  return plan_[value].meta.contents;
}

bool KnownContents::MayCompute(const Instruction& instruction) const {
  if (instruction.kind == InstructionKind::kCopy) return true;
  return instruction.kind == InstructionKind::kOp && MayEvaluate(ContextOf(plan_, instruction));
}

bool KnownContents::Compute(const Instruction& instruction, std::string* why) {
  if (instruction.kind == InstructionKind::kCopy) {
    plan_[instruction.outputs[0]].meta.contents = plan_[instruction.inputs[0]].meta.contents;
    return true;
  }
  try {
    const std::vector<Contents> made = Evaluate(registry_, ContextOf(plan_, instruction));
    for (size_t i = 0; i < made.size(); ++i) {
      if (instruction.outputs[i]) plan_[instruction.outputs[i]].meta.contents = made[i];
    }
    return true;
  } catch (const Error& error) {
    *why = StrCat(PlaceOf(instruction), ", which fails: ", error.what());
    return false;
  }
}

}  // namespace skiff
