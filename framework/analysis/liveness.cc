#include "framework/analysis/liveness.h"

#include <algorithm>
#include <numeric>

#include "framework/analysis/plan_uses.h"

namespace skiff {

std::vector<int64_t> LastReads(const Plan& plan) {
  std::vector<int64_t> last;
  last.reserve(plan.values.size());
  for (const std::vector<size_t>& readers : DataReaders(plan)) {
    last.push_back(readers.empty() ? -1 : static_cast<int64_t>(readers.back()));
  }
  return last;
}

std::vector<Life> StorageLives(const Plan& plan) {
  const std::vector<int64_t> last_reads = LastReads(plan);
  std::vector<Life> lives(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto instant = static_cast<int32_t>(i);
    for (int32_t output : plan.instructions[i].outputs) {
      if (output < 0) continue;
      Life& life = lives[static_cast<size_t>(plan.StorageOf(output))];
      if (life.first < 0) life.first = instant;
      const auto last_read = static_cast<int32_t>(last_reads[static_cast<size_t>(output)]);
      life.last = std::max({life.last, instant, last_read});
    }
  }
  const auto is_skipped = [&](const PlanValue& value) {
    return std::ranges::count(plan.memory.skip, value.name) > 0;
  };
  if (plan.memory.skip.empty()) return lives;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first < 0 || !is_skipped(plan.values[i])) continue;
    lives[i] = {.first = 0, .last = static_cast<int32_t>(plan.instructions.size())};
  }
  return lives;
}

std::vector<int64_t> LiveBytes(const Plan& plan) {
  const std::vector<Life> lives = StorageLives(plan);
  // What comes and goes at each instant, added up below.
  std::vector<int64_t> bytes(plan.instructions.size() + 2, 0);
  for (size_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].storage != Storage::kArena || lives[i].first < 0) continue;
    const int64_t size = StorageBytes(plan.values[i]);
    bytes[static_cast<size_t>(lives[i].first)] += size;
    bytes[static_cast<size_t>(lives[i].last) + 1] -= size;
  }
  bytes.resize(plan.instructions.size());
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::vector<int64_t>& workspaces = plan.instructions[i].workspace_bytes;
    bytes[i] = std::accumulate(workspaces.begin(), workspaces.end(), bytes[i]);
  }
  return bytes;
}

}  // namespace skiff
