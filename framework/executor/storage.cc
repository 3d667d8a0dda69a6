#include "framework/executor/storage.h"

#include <algorithm>
#include <vector>

#include "framework/analysis/liveness.h"
#include "framework/base/error.h"
#include "memory/allocator.h"
#include "memory/reuse_policy.h"

namespace skiff {

void PlanStorage(Plan* plan) {
  const std::vector<Life> lives = StorageLives(*plan);
  std::vector<ArenaBuffer> buffers;
  std::vector<int64_t*> offsets;  // where the offset of each buffer goes
  int64_t unshared_bytes = 0;
  // Above this nothing can be allocated, and below it no sum of the planner overflows.
  constexpr int64_t kLimitBytes = int64_t{1} << 60;
  const auto count_unshared = [&](int64_t bytes) {
    SKIFF_ENFORCE(bytes <= kLimitBytes - unshared_bytes, kResourceExhausted, "the plan needs ",
                  unshared_bytes, " + ", bytes, " bytes: expected at most ", kLimitBytes);
    unshared_bytes += bytes;
  };
  const auto add = [&](int64_t bytes, int32_t first, int32_t last, int64_t* offset) {
    buffers.push_back(
        {.bytes = bytes, .alignment = kBufferAlignment, .first_use = first, .last_use = last});
    offsets.push_back(offset);
    count_unshared(bytes);
  };
  for (size_t i = 0; i < plan->values.size(); ++i) {
    PlanValue& value = plan->values[i];
    if (value.storage != Storage::kArena) continue;
    const int64_t bytes = StorageBytes(value);
    if (value.alias_of >= 0) {
      count_unshared(bytes);
      continue;
    }
    if (lives[i].first < 0) continue;  // its instruction was dropped
    add(bytes, lives[i].first, lives[i].last, &value.offset);
  }
  for (size_t i = 0; i < plan->instructions.size(); ++i) {
    Instruction& instruction = plan->instructions[i];
    instruction.workspace_offsets.assign(instruction.workspace_bytes.size(), 0);
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      add(instruction.workspace_bytes[j], static_cast<int32_t>(i), static_cast<int32_t>(i),
          &instruction.workspace_offsets[j]);
    }
  }
  const ArenaPlan arena = PlanWithPolicy(buffers, plan->reuse);
  for (size_t i = 0; i < offsets.size(); ++i) *offsets[i] = arena.offsets[i];
  plan->planned_bytes = arena.planned_bytes;
  plan->max_live_bytes = arena.max_live_bytes;
  plan->unshared_bytes = unshared_bytes;
}

}  // namespace skiff
