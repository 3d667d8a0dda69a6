// One pass in order, on last reads by storage root. A view joins the storage of its input
// unconditionally and prolongs that storage's life. An output is computed in place of an input only
// if no value in the input's storage is read later, so views and in-place results never conflict:
// whichever comes first changes the last read that the other one checks. What is left to the
// planner is to place roots with disjoint lives in the same space.
#include "framework/transpiler/memory_reuse_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/flat_update.h"
#include "framework/analysis/liveness.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/error.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Returns, for each value, the end of all instructions of the communication stream that read or
// write it; -1 if there is none.
ValueTable<int64_t> EndsOfUsesBeside(const Plan& plan) {
  const std::vector<size_t> ends = StreamEnds(plan);
  ValueTable<int64_t> until(plan.values.size(), -1);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.stream == PlanStream::kMain) continue;
    const auto use = [&](ValueId value) {
      if (value) until[value] = std::max(until[value], static_cast<int64_t>(ends[i]));
    };
    std::ranges::for_each(instruction.inputs, use);
    std::ranges::for_each(instruction.outputs, use);
  }
  return until;
}

class StorageSharing {
 public:
  explicit StorageSharing(Plan* plan)
      : plan_(*plan),
        last_(LastReads(*plan)),
        beside_until_(EndsOfUsesBeside(*plan)),
        is_of_forward_half_(plan->values.size()) {}

  void Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      if (IsLoopBoundary(instruction)) NoteForwardHalf(i);
      for (const auto& [from, to] : ViewPairs(plan_, instruction)) {
        ShareView(instruction, static_cast<int64_t>(i),
                  instruction.inputs[static_cast<size_t>(from)],
                  instruction.outputs[static_cast<size_t>(to)]);
      }
      for (const auto& [from, to] : InPlacePairs(plan_, instruction)) {
        ShareInPlace(instruction, static_cast<int64_t>(i),
                     instruction.inputs[static_cast<size_t>(from)],
                     instruction.outputs[static_cast<size_t>(to)]);
      }
    }
  }

  int64_t views() const { return views_; }
  int64_t in_place() const { return in_place_; }

 private:
  PlanValue& ValueOf(ValueId value) { return plan_[value]; }
  int64_t& LastReadOf(ValueId value) { return last_[value]; }

  void NoteForwardHalf(size_t boundary) {
    for (size_t i = 0; i < boundary; ++i) {
      for (const ValueId output : plan_.instructions[i].outputs) {
        if (output) is_of_forward_half_[output] = true;
      }
    }
  }

  // Safe whoever else reads the input: ShareInPlace lets nothing write to a storage before the last
  // read of any value in it.
  void ShareView(const Instruction& instruction, int64_t position, ValueId input, ValueId output) {
    if (!MayShare(instruction, position, input, output)) return;
    PutOn(input, output);
    ++views_;
  }

  void ShareInPlace(const Instruction& instruction, int64_t position, ValueId input,
                    ValueId output) {
    if (!MayShare(instruction, position, input, output)) return;
    const ValueId root = plan_.StorageOf(input);
    // A kernel works in place on one pair. If the instruction reads the storage through another
    // input, too, the first elements written would spoil that input.
    if (LastReadOf(root) != position || ReadsOfStorage(instruction, root) != 1) return;
    // What the halves of a loop hand over lies in slots with room for the rows of an iteration.
    const bool adds_rows = instruction.def != nullptr && instruction.def->adds_rows_in_place;
    if (adds_rows && is_of_forward_half_[root]) return;
    PutOn(input, output);
    ++in_place_;
    // Only if nothing reads the output. Another output of this instruction must not get the same
    // storage.
    if (LastReadOf(root) == position) LastReadOf(root) = position + 1;
  }

  bool MayShare(const Instruction& instruction, int64_t position, ValueId input, ValueId output) {
    if (ValueOf(output).alias_of || !MayShareStorage(ValueOf(input), ValueOf(output))) return false;
    // Else an instruction of the other stream may still be at work there. In that stream, the
    // earlier instructions are over.
    return instruction.stream == PlanStream::kCommunication ||
           beside_until_[plan_.StorageOf(input)] <= position;
  }

  void PutOn(ValueId input, ValueId output) {
    const ValueId root = plan_.StorageOf(input);
    ValueOf(output).alias_of = root;  // so that no chain grows long
    LastReadOf(root) = std::max(LastReadOf(root), LastReadOf(output));
    beside_until_[root] = std::max(beside_until_[root], beside_until_[output]);
  }

  int64_t ReadsOfStorage(const Instruction& instruction, ValueId root) const {
    return std::ranges::count_if(
        instruction.inputs, [&](ValueId input) { return input && plan_.StorageOf(input) == root; });
  }

  Plan& plan_;
  // Both of a storage's root: over all values in it.
  ValueTable<int64_t> last_;
  ValueTable<int64_t> beside_until_;
  // In the gradient half of a loop: what the forward half has written.
  ValueTable<bool> is_of_forward_half_;
  int64_t views_ = 0;
  int64_t in_place_ = 0;
};

// Requests contiguous storage for those lists of a flat update that are in the arena: gradients.
void LayFlat(const Instruction& update, int64_t wanted_alignment, Plan* plan) {
  if (update.kind != InstructionKind::kOp || !IsFlatUpdate(update.def, *update.op)) return;
  for (const StaticText slot : update.def->update->lists) {
    ContiguousValues list;
    int64_t largest_bytes = 0;
    DType dtype = DType::kFloat32;
    for (size_t i = 0; i < update.op->Input(slot).size(); ++i) {
      const ValueId value = update.InputIn(slot, i);
      if (!value) continue;
      const PlanValue& held = (*plan)[value];
      if (held.storage != Storage::kArena) continue;
      list.values.push_back(value);
      largest_bytes = std::max(largest_bytes, StorageBytes(held));
      dtype = held.meta.dtype;
    }
    list.alignment_bytes = FlatAlignment(wanted_alignment, largest_bytes, dtype);
    if (list.values.size() > 1) plan->contiguous.push_back(std::move(list));
  }
}

void LayFlat(int64_t wanted_alignment, Plan* plan) {
  plan->contiguous.clear();
  for (const Instruction& instruction : plan->instructions)
    LayFlat(instruction, wanted_alignment, plan);
}

}  // namespace

std::vector<int64_t> LiveBytesWithReuse(const PassContext& context, Plan plan) {
  MemoryReusePass().Apply(context, &plan);
  return LiveBytes(plan);
}

int64_t MostLiveBytesWithReuse(const PassContext& context, Plan plan) {
  const std::vector<int64_t> live = LiveBytesWithReuse(context, std::move(plan));
  return live.empty() ? 0 : std::ranges::max(live);
}

PassReport MemoryReusePass::Apply(const PassContext& context, Plan* plan) const {
  plan->has_guards = context.memory.guards && plan->place.is_cpu();
  plan->reuse = plan->has_guards ? ReusePolicy::kNone : context.memory.policy;
  // With any policy: this doesn't save memory, it is what flat updates are for.
  LayFlat(context.memory.flat_alignment_bytes, plan);
  if (plan->reuse == ReusePolicy::kNone)
    return {.pass = {}, .changes = 0, .summary = "policy none"};
  StorageSharing sharing(plan);
  sharing.Run();
  return {.pass = {},
          .changes = sharing.views() + sharing.in_place(),
          .summary = StrCat("policy ", ReusePolicyName(plan->reuse), ", ", sharing.in_place(),
                            " values computed in place, ", sharing.views(), " views")};
}

}  // namespace skiff
