// For each forward instruction with a cheap replay: if the backward pass keeps x for its own sake
// until after the last reader of y, then y needn't be kept. The first backward reader of y gets a
// replay right before it, and all backward readers read the replay's result. So y dies at its last
// forward reader.
#include "framework/transpiler/replay_activation_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "framework/analysis/plan_uses.h"
#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/transpiler/replay.h"

namespace skiff {
namespace {

class Replaying {
 public:
  Replaying(const PassContext& context, Plan* plan)
      : context_(context), plan_(*plan), uses_(*plan) {}

  int64_t Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      const bool is_op = instruction.kind == InstructionKind::kOp;
      if (is_op && !instruction.def->replayed_by.empty() && !IsBackward(i)) TryReplay(i);
    }
    const auto replays = static_cast<int64_t>(replays_.size());
    Rewrite();
    return replays;
  }

 private:
  bool IsBackward(size_t i) const {
    return i < plan_.instructions.size() && (plan_.instructions[i].op->role() & kRoleBackward) != 0;
  }

  // Returns the only input of a replay that is as large as its output, or none if there are no such
  // inputs or several.
  ValueId LargeInput(const OpDef& replay, const Instruction& instruction, ValueId output) const {
    ValueId large;
    for (const SlotDef& slot : replay.inputs) {
      const ValueId input = instruction.InputIn(slot.name);
      if (!input || BytesOf(input) < BytesOf(output)) continue;
      if (large) return {};
      large = input;
    }
    return large;
  }

  int64_t BytesOf(ValueId value) const { return StorageBytes(plan_[value]); }

  void TryReplay(size_t position) {
    // A copy: MakeReplay below adds to the plan.
    const Instruction instruction = plan_.instructions[position];
    const OpDef& def = context_.registry.Get(instruction.def->replayed_by);
    const ValueId y =
        def.outputs.size() == 1 ? instruction.OutputIn(def.outputs[0].name) : ValueId();
    if (!y || plan_[y].storage != Storage::kArena) return;
    const ValueId x = LargeInput(def, instruction, y);
    // If x was replayed itself, it isn't kept, and this replay would need that one first.
    if (!x || replayed_.contains(x)) return;
    const std::vector<size_t>& of_y = uses_.ReadersOf(y);
    const std::vector<size_t>& of_x = uses_.ReadersOf(x);
    const auto first = std::ranges::find_if(of_y, [&](size_t i) { return IsBackward(i); });
    const bool to_the_end = std::all_of(first, of_y.end(), [&](size_t i) { return IsBackward(i); });
    // Saves memory only if the backward pass keeps x as long as y anyway, and if the last readers
    // of y are all in the backward pass: a fetch keeps y.
    if (first == of_y.end() || !to_the_end || of_x.back() < of_y.back()) return;
    std::optional<Instruction> replay =
        MakeReplay(context_, &plan_, instruction, plan_.instructions[*first]);
    if (!replay || WritesScopeOf(plan_, replay->inputs, position + 1, *first)) return;
    const ValueId again = plan_.values.Add(plan_[y]);
    replay->outputs = {again};
    replays_.emplace(*first, *std::move(replay));
    replayed_.insert(y);
    for (auto reader = first; reader != of_y.end(); ++reader) {
      for (ValueId& input : plan_.instructions[*reader].inputs) {
        if (input == y) input = again;
      }
    }
  }

  void Rewrite() {
    std::vector<Instruction> rewritten;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto [begin, end] = replays_.equal_range(i);
      for (auto replay = begin; replay != end; ++replay) {
        rewritten.push_back(std::move(replay->second));
      }
      rewritten.push_back(std::move(plan_.instructions[i]));
    }
    plan_.instructions = std::move(rewritten);
  }

  const PassContext& context_;
  Plan& plan_;
  const PlanUses uses_;  // before anything is replayed
  std::set<ValueId> replayed_;
  std::multimap<size_t, Instruction> replays_;  // by the instruction that they go before
};

}  // namespace

PassReport ReplayActivationPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t replays = Replaying(context, plan).Run();
  return {.pass = {}, .changes = replays, .summary = StrCat(replays, " activations replayed")};
}

}  // namespace skiff
