#include "framework/transpiler/overlap_collectives_pass.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/dependencies.h"
#include "framework/analysis/plan_uses.h"
#include "framework/analysis/rank_differences.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/str_cat.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

// Returns whether the instruction may run beside those after it. They know the shapes of its
// results before it has ended, and the host doesn't wait for a device to give it data.
bool MayRunBeside(const Plan& plan, const Instruction& instruction) {
  if (!IsCollective(instruction) || instruction.sets_rows) return false;
  if (instruction.def->data_dependent_shape) return false;
  if (WorksOnBatch(*instruction.def)) return false;  // on all cores
  if (instruction.place != plan.place) return false;
  return std::ranges::none_of(instruction.outputs, [&](ValueId output) {
    return output && (plan[output].storage == Storage::kKernelOwned || plan[output].meta.is_array ||
                      plan[output].place != plan.place);
  });
}

// Finds the order in which each instruction that may run beside others comes as early as it can.
class EarlyOrder {
 public:
  explicit EarlyOrder(const Plan& plan)
      : plan_(plan), before_(Dependencies(plan)), readers_(DataReaders(plan)) {}

  // Returns the instructions by their present indices.
  std::vector<size_t> Find() {
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const bool moves = MayRunBeside(plan_, plan_.instructions[i]);
      follows_.push_back(moves ? LastNeeded(i) : static_cast<int64_t>(i));
      order.push_back(i);
    }
    // An instruction follows itself, unless it moves; those that follow the same keep their order.
    std::ranges::stable_sort(order, {}, [&](size_t i) {
      return std::pair(follows_[i], follows_[i] != static_cast<int64_t>(i));
    });
    return order;
  }

 private:
  // Returns the last instruction that the one must follow; -1 if there is none.
  int64_t LastNeeded(size_t index) const {
    int64_t last = -1;
    for (const size_t earlier : before_[index]) last = std::max(last, follows_[earlier]);
    // It works in place only behind all other readers of the input.
    const Instruction& instruction = plan_.instructions[index];
    for (const auto& [from, to] : InPlacePairs(plan_, instruction)) {
      const ValueId input = instruction.inputs[static_cast<size_t>(from)];
      if (!input) continue;
      for (const size_t reader : readers_[input]) {
        if (reader < index) last = std::max(last, follows_[reader]);
      }
    }
    return last;
  }

  const Plan& plan_;
  const std::vector<std::vector<size_t>> before_;
  const ValueTable<std::vector<size_t>> readers_;
  std::vector<int64_t> follows_;  // the instruction behind which each comes
};

// Returns the order in which optimizer ops that wait for a collective instruction, and who needs
// their results, come last.
std::vector<size_t> LateUpdates(const Plan& plan) {
  const std::vector<std::vector<size_t>> data = DataDependencies(plan);
  const std::vector<std::vector<size_t>> before = Dependencies(plan);
  std::vector<bool> waits;
  std::vector<bool> is_late;
  std::vector<size_t> order;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const bool is_beside = instruction.stream == PlanStream::kCommunication;
    const bool follows_wait = std::ranges::any_of(data[i], [&](size_t j) { return waits[j]; });
    const bool is_update = !is_beside && (instruction.op->role() & kRoleOptimize) != 0;
    waits.push_back(is_beside || follows_wait);
    is_late.push_back((is_update && follows_wait) ||
                      std::ranges::any_of(before[i], [&](size_t j) { return is_late[j]; }));
    order.push_back(i);
  }
  std::ranges::stable_partition(order, [&](size_t i) { return !is_late[i]; });
  return order;
}

void Reorder(const std::vector<size_t>& order, Plan* plan) {
  std::vector<Instruction> ordered;
  for (const size_t i : order) ordered.push_back(std::move(plan->instructions[i]));
  plan->instructions = std::move(ordered);
}

}  // namespace

PassReport OverlapCollectivesPass::Apply(const PassContext&, Plan* plan) const {
  const int64_t count = std::ranges::count_if(
      plan->instructions, [&](const Instruction& i) { return MayRunBeside(*plan, i); });
  if (count == 0) return {.pass = {}, .changes = 0, .summary = "no collective instructions"};
  Reorder(EarlyOrder(*plan).Find(), plan);
  for (Instruction& instruction : plan->instructions) {
    if (MayRunBeside(*plan, instruction)) instruction.stream = PlanStream::kCommunication;
  }
  Reorder(LateUpdates(*plan), plan);
  const std::vector<int32_t> waits = StreamWaits(*plan);
  for (size_t i = 0; i < waits.size(); ++i) plan->instructions[i].waits_for = waits[i];
  const int64_t waited = std::ranges::count_if(waits, [](int32_t wait) { return wait >= 0; });
  return {.pass = {},
          .changes = count,
          .summary = StrCat(count, " collective instructions beside the others, ", waited,
                            " waits for them")};
}

}  // namespace skiff
