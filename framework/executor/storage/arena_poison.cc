#include "framework/executor/storage/arena_poison.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "framework/analysis/liveness.h"
#include "framework/analysis/stream_waits.h"
#include "framework/executor/storage/storage.h"

namespace skiff {
namespace {

// All bits set are a NaN in every floating-point dtype and -1 in every integer.
constexpr int kDead = 0xff;
// A large number in every dtype.
constexpr int kUnwritten = 0x5b;

}  // namespace

ArenaPoison::ArenaPoison(const Plan& plan, const ValueTensors& values)
    : values_(values),
      byte_(plan.has_guards ? kUnwritten : kDead),
      dead_after_(plan.instructions.size()) {
  if (plan.has_guards) {
    before_ = ValueRanges(plan);
    for (const Instruction& instruction : plan.instructions) {
      // There are guards inside that of a loop, which its body fills.
      if (instruction.kind == InstructionKind::kLoop) continue;
      std::ranges::copy(WorkspaceRanges(instruction), std::back_inserter(before_));
    }
    return;
  }
  before_.push_back({0, plan.planned_bytes});
  // From the lives that the planner uses: whatever reads a value after its life, because an
  // analysis or a kernel is wrong, then reads NaN.
  const ValueTable<Life> lives = StorageLives(plan);
  for (const ValueId id : plan.ids()) {
    const PlanValue& value = plan[id];
    const auto last = static_cast<size_t>(lives[id].last);
    const bool dies = value.storage == Storage::kArena && lives[id].first >= 0;
    // A fetched value lives past the last instruction.
    if (!dies || last >= dead_after_.size()) continue;
    dead_after_[last].push_back({value.offset, value.offset + StorageBytes(value)});
  }
  const std::vector<size_t> ends = StreamEnds(plan);
  const std::optional<StreamWorkspace> shared = WorkspaceOfStream(plan, plan.place);
  for (size_t i = 0; i < dead_after_.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const bool shares = shared && instruction.stream == PlanStream::kCommunication;
    const size_t end = shares ? static_cast<size_t>(shared->life.last) : ends[i];
    if (end >= dead_after_.size()) continue;
    std::ranges::copy(WorkspaceRanges(instruction), std::back_inserter(dead_after_[end]));
  }
}

void ArenaPoison::PoisonAll() const {
  for (const ByteRange& range : before_) Poison(range);
}

void ArenaPoison::PoisonAfter(size_t instruction) const {
  for (const ByteRange& range : dead_after_[instruction]) Poison(range);
}

void ArenaPoison::Poison(const ByteRange& range) const {
  if (range.begin == range.end) return;
  std::memset(values_.InArena(Place::Cpu(), range.begin), byte_,
              static_cast<size_t>(range.end - range.begin));
}

}  // namespace skiff
