#include "framework/executor/rows/known_contents.h"

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

std::vector<KnownContents::Contents> EvaluateKnown(const OpRegistry& registry, const Plan& plan,
                                                   const Instruction& instruction,
                                                   const OpContext& context) {
  const auto is_known = [&](ValueId value) {
    return value && plan[value].meta.contents != nullptr;
  };
  if (std::ranges::none_of(instruction.outputs, is_known))
    return std::vector<KnownContents::Contents>(instruction.outputs.size());
  auto made = Evaluate(registry, context);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!is_known(instruction.outputs[i])) made[i] = nullptr;
  }
  return made;
}

void FollowShapes(const OpRegistry& registry, const Plan& plan, size_t begin, size_t end,
                  Plan* current) {
  const auto set = [&](ValueId value, const KnownContents::Contents& contents) {
    if (value && plan[value].meta.contents != nullptr) (*current)[value].meta.contents = contents;
  };
  const auto differs = [&](ValueId value) {
    if (!value) return false;
    const TensorMeta& now = (*current)[value].meta;
    return now.shape != plan[value].meta.shape || now.contents != plan[value].meta.contents;
  };
  const auto follow = [&](const Instruction& instruction) {
    // Most constants follow from no rows.
    if (std::ranges::none_of(instruction.inputs, differs)) {
      for (const ValueId output : instruction.outputs) {
        if (output) set(output, plan[output].meta.contents);
      }
    } else if (instruction.kind == InstructionKind::kCopy) {
      set(instruction.outputs[0], (*current)[instruction.inputs[0]].meta.contents);
    } else {
      const auto made =
          EvaluateKnown(registry, plan, instruction, ContextOf(*current, instruction));
      for (size_t i = 0; i < made.size(); ++i) set(instruction.outputs[i], made[i]);
    }
  };
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.kind == InstructionKind::kFused) {
      for (const Instruction& member : instruction.members) follow(member);
    } else if (instruction.kind != InstructionKind::kLoop) {
      follow(instruction);
    }
  }
}

}  // namespace skiff
