#include "framework/executor/arena_poison.h"

#include <cstring>

#include "framework/analysis/liveness.h"

namespace skiff {

ArenaPoison::ArenaPoison(const Plan& plan, const ValueTensors& values)
    : values_(values), arena_bytes_(plan.planned_bytes), dead_after_(plan.instructions.size()) {
  // From the lives that the planner uses: whatever reads a value after its life, because an
  // analysis or a kernel is wrong, then reads NaN.
  const ValueTable<Life> lives = StorageLives(plan);
  for (const ValueId id : plan.ids()) {
    const PlanValue& value = plan[id];
    const auto last = static_cast<size_t>(lives[id].last);
    const bool dies = value.storage == Storage::kArena && lives[id].first >= 0;
    // A fetched value lives past the last instruction.
    if (!dies || last >= dead_after_.size()) continue;
    dead_after_[last].push_back({value.offset, StorageBytes(value)});
  }
  for (size_t i = 0; i < dead_after_.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      dead_after_[i].push_back({instruction.workspace_offsets[j], instruction.workspace_bytes[j]});
    }
  }
}

void ArenaPoison::PoisonAfter(size_t instruction) const {
  for (const Range& range : dead_after_[instruction]) Poison(range);
}

void ArenaPoison::Poison(Range range) const {
  if (range.bytes == 0) return;
  // All bits set are a NaN in every floating-point dtype and -1 in every integer.
  constexpr int kPoison = 0xff;
  std::memset(values_.InArena(Place::Cpu(), range.offset), kPoison,
              static_cast<size_t>(range.bytes));
}

}  // namespace skiff
