// Values in the arena that have a storage of their own, and workspaces, become buffers of the
// planner, each with the first and the last instruction at which it is needed. Afterwards the
// planner's offsets are written back.
#include "framework/executor/storage.h"

#include <algorithm>
#include <map>
#include <vector>

#include "framework/analysis/contiguous_values.h"
#include "framework/analysis/liveness.h"
#include "framework/base/error.h"
#include "memory/allocator.h"
#include "memory/reuse_policy.h"

namespace skiff {

namespace {

// Above this nothing can be allocated, and below it no sum of the planner overflows.
constexpr int64_t kLimitBytes = int64_t{1} << 60;

// Turns values and workspaces into buffers with lives, for the planner, which knows nothing of
// plans. An alias takes no buffer: StorageLives extends its root's life over its readers. A
// workspace lives during its instruction alone.
class StorageRequests {
 public:
  // Those of one place.
  StorageRequests(Plan* plan, Place place)
      : plan_(*plan), place_(place), lives_(StorageLives(*plan)) {
    for (const ValueId value : plan_.ids()) AddValue(value);
    AddGroups();
    for (size_t i = 0; i < plan_.instructions.size(); ++i) AddWorkspaces(i);
  }

  // Sets the offsets and returns the arena.
  ArenaPlan PlanArena() {
    ArenaPlan arena = PlanWithPolicy(buffers_, plan_.reuse);
    for (size_t i = 0; i < offsets_.size(); ++i) *offsets_[i] = arena.offsets[i];
    return arena;
  }

  int64_t unshared_bytes() const { return unshared_bytes_; }

 private:
  void AddValue(ValueId id) {
    PlanValue& value = plan_[id];
    if (value.storage != Storage::kArena || value.place != place_) return;
    const int64_t bytes = StorageBytes(value);
    const Life& life = lives_[id];
    // It would have taken memory of its own without reuse.
    if (value.alias_of) {
      CountUnshared(bytes);
    } else if (life.first >= 0) {  // else its instruction was dropped
      buffer_of_[id] = buffers_.size();
      Add(bytes, life, &value.offset);
    }
  }

  void AddGroups() {
    const std::vector<std::vector<ContiguousSlice>> groups = ContiguousSlices(plan_);
    for (size_t group = 0; group < groups.size(); ++group) {
      int64_t alignment = std::max(kBufferAlignment, plan_.contiguous[group].alignment_bytes);
      for (const ContiguousSlice& slice : groups[group]) {
        if (plan_[slice.root].place != place_) continue;
        ArenaBuffer& buffer = buffers_[buffer_of_[slice.root]];
        buffer.alignment = alignment;
        buffer.group = static_cast<int32_t>(group);
        buffer.group_offset = slice.offset;
        // The first slice makes the whole group begin at the alignment of other buffers. Inside the
        // group, the list's own alignment decides; it may be smaller.
        alignment = plan_.contiguous[group].alignment_bytes;
      }
    }
  }

  void AddWorkspaces(size_t index) {
    Instruction& instruction = plan_.instructions[index];
    if (instruction.place != place_) return;
    instruction.workspace_offsets.assign(instruction.workspace_bytes.size(), 0);
    const auto instant = static_cast<int32_t>(index);
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      Add(instruction.workspace_bytes[j], {.first = instant, .last = instant},
          &instruction.workspace_offsets[j]);
    }
  }

  void Add(int64_t bytes, const Life& life, int64_t* offset) {
    buffers_.push_back({.bytes = bytes,
                        .alignment = kBufferAlignment,
                        .first_use = life.first,
                        .last_use = life.last});
    offsets_.push_back(offset);
    CountUnshared(bytes);
  }

  void CountUnshared(int64_t bytes) {
    SKIFF_ENFORCE(bytes <= kLimitBytes - unshared_bytes_, kResourceExhausted, "the plan needs ",
                  unshared_bytes_, " + ", bytes, " bytes: expected at most ", kLimitBytes);
    unshared_bytes_ += bytes;
  }

  Plan& plan_;
  const Place place_;
  const ValueTable<Life> lives_;
  std::vector<ArenaBuffer> buffers_;
  std::vector<int64_t*> offsets_;  // where the offset of each buffer goes
  std::map<ValueId, size_t> buffer_of_;
  int64_t unshared_bytes_ = 0;
};

}  // namespace

void PlanStorage(Plan* plan) {
  StorageRequests requests(plan, plan->place);
  const ArenaPlan arena = requests.PlanArena();
  plan->planned_bytes = arena.planned_bytes;
  plan->max_live_bytes = arena.max_live_bytes;
  plan->unshared_bytes = requests.unshared_bytes();
  if (plan->place.is_cpu()) return;
  plan->host_planned_bytes = StorageRequests(plan, Place::Cpu()).PlanArena().planned_bytes;
}

}  // namespace skiff
