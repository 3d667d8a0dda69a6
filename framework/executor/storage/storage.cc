// Values in the arena that have a storage of their own, and workspaces, become buffers of the
// planner, each with the first and the last instruction at which it is needed. Afterwards the
// planner's offsets are written back. All workspaces of the communication stream are one buffer.
#include "framework/executor/storage/storage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "framework/analysis/contiguous_values.h"
#include "framework/analysis/liveness.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/error.h"
#include "framework/executor/storage/guarded_memory.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "memory/reuse_policy.h"

namespace skiff {

namespace {

// Above this nothing can be allocated, and below it no sum of the planner overflows.
constexpr int64_t kLimitBytes = int64_t{1} << 60;

// Turns values and workspaces into buffers with lives, for the planner, which knows nothing of
// plans. An alias takes no buffer: StorageLives extends its root's life over its readers. A
// workspace lives until its instruction is over.
class StorageRequests {
 public:
  // Those of one place.
  StorageRequests(Plan* plan, Place place)
      : plan_(*plan),
        place_(place),
        lives_(StorageLives(*plan)),
        ends_(StreamEnds(*plan)),
        of_stream_(WorkspaceOfStream(*plan, place)) {
    for (const ValueId value : plan_.ids()) AddValue(value);
    AddGroups();
    if (of_stream_) Add(of_stream_->bytes, kBufferAlignment, of_stream_->life, &of_stream_offset_);
    for (size_t i = 0; i < plan_.instructions.size(); ++i) AddWorkspaces(i);
  }

  // Sets the offsets and returns the arena.
  ArenaPlan PlanArena() {
    const std::vector<int64_t> shifts =
        plan_.has_guards ? AddGuards() : std::vector<int64_t>(buffers_.size());
    ArenaPlan arena = PlanWithPolicy(buffers_, plan_.reuse);
    for (size_t i = 0; i < offsets_.size(); ++i) *offsets_[i] = arena.offsets[i] + shifts[i];
    if (of_stream_) PlaceWorkspacesOfStream();
    if (plan_.has_guards) arena.planned_bytes += PageBytes();
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
      Add(bytes, AlignmentOf(plan_, value.meta.dtype, value.meta.layout), life, &value.offset);
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

  // Gives each buffer, or each group of them, whole pages and one more. Returns how far from the
  // first page each begins: the first of all is free, too.
  std::vector<int64_t> AddGuards() {
    std::map<int64_t, std::vector<size_t>> wholes;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const int64_t alone = -1 - static_cast<int64_t>(i);
      wholes[buffers_[i].group < 0 ? alone : buffers_[i].group].push_back(i);
    }
    std::vector<int64_t> shifts(buffers_.size());
    for (const auto& [group, parts] : wholes) {
      const auto end_of = [&](size_t i) { return buffers_[i].group_offset + buffers_[i].bytes; };
      const auto begin_of = [&](size_t i) { return buffers_[i].group_offset; };
      ArenaBuffer& first = buffers_[*std::ranges::min_element(parts, {}, begin_of)];
      ArenaBuffer& last = buffers_[*std::ranges::max_element(parts, {}, end_of)];
      const int64_t bytes = last.group_offset + last.bytes;
      int64_t end = 0;
      const int64_t begin = PlaceGuarded(bytes, first.alignment, &end);
      for (const size_t i : parts) shifts[i] = begin + PageBytes();
      first.alignment = std::max(first.alignment, PageBytes());
      last.bytes = end - last.group_offset;
    }
    return shifts;
  }

  void AddWorkspaces(size_t index) {
    Instruction& instruction = plan_.instructions[index];
    if (instruction.place != place_) return;
    instruction.workspace_offsets.assign(instruction.workspace_bytes.size(), 0);
    if (of_stream_ && instruction.stream == PlanStream::kCommunication) return;
    const Life life{.first = static_cast<int32_t>(index),
                    .last = static_cast<int32_t>(ends_[index])};
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      Add(instruction.workspace_bytes[j], kBufferAlignment, life,
          &instruction.workspace_offsets[j]);
    }
  }

  void PlaceWorkspacesOfStream() {
    for (Instruction& instruction : plan_.instructions) {
      if (instruction.stream == PlanStream::kMain || instruction.place != place_) continue;
      const std::vector<int64_t> row = WorkspacesInRow(instruction);
      for (size_t j = 0; j + 1 < row.size(); ++j) {
        instruction.workspace_offsets[j] = of_stream_offset_ + row[j];
      }
    }
  }

  void Add(int64_t bytes, int64_t alignment, const Life& life, int64_t* offset) {
    buffers_.push_back(
        {.bytes = bytes, .alignment = alignment, .first_use = life.first, .last_use = life.last});
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
  const std::vector<size_t> ends_;  // of instructions
  const std::optional<StreamWorkspace> of_stream_;
  int64_t of_stream_offset_ = 0;
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

int64_t AlignmentOf(const Plan& plan, DType dtype, Layout layout) {
  if (!plan.has_guards || layout.is_blocked()) return kBufferAlignment;
  return layout.selected_rows ? SizeOf(DType::kInt64) : SizeOf(dtype);
}

std::shared_ptr<Buffer> NewBlock(const Plan& plan, Place place, int64_t bytes, MemoryTag tag) {
  if (plan.has_guards) return GuardedBlock(bytes, kBufferAlignment, tag);
  return std::make_shared<Buffer>(AllocatorOf(place), bytes, AllocationOptions{.tag = tag});
}

std::vector<ByteRange> ValueRanges(const Plan& plan) {
  std::vector<ByteRange> ranges;
  for (const PlanValue& value : plan.values) {
    if (value.storage != Storage::kArena || value.alias_of || value.offset < 0) continue;
    ranges.push_back({value.offset, value.offset + StorageBytes(value)});
  }
  return ranges;
}

std::vector<ByteRange> WorkspaceRanges(const Instruction& instruction) {
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i < instruction.workspace_bytes.size(); ++i) {
    const int64_t begin = instruction.workspace_offsets[i];
    ranges.push_back({begin, begin + instruction.workspace_bytes[i]});
  }
  return ranges;
}

std::vector<ByteRange> UsedRanges(const Plan& plan) {
  std::vector<ByteRange> ranges = ValueRanges(plan);
  for (const Instruction& instruction : plan.instructions) {
    std::ranges::copy(WorkspaceRanges(instruction), std::back_inserter(ranges));
  }
  return ranges;
}

}  // namespace skiff
