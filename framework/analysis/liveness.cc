#include "framework/analysis/liveness.h"

#include <algorithm>
#include <numeric>

#include "framework/analysis/plan_uses.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/element_count.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

// Returns, for each value, when the last of its readers is over; -1 if none reads it.
ValueTable<int32_t> EndsOfReads(const Plan& plan, const std::vector<size_t>& ends) {
  const ValueTable<std::vector<size_t>> readers = DataReaders(plan);
  ValueTable<int32_t> last(plan.values.size(), -1);
  for (const ValueId value : plan.ids()) {
    for (const size_t reader : readers[value]) {
      last[value] = std::max(last[value], static_cast<int32_t>(ends[reader]));
    }
  }
  return last;
}

}  // namespace

ValueTable<int64_t> LastReads(const Plan& plan) {
  const ValueTable<std::vector<size_t>> readers = DataReaders(plan);
  ValueTable<int64_t> last(plan.values.size(), -1);
  for (const ValueId value : plan.ids()) {
    if (!readers[value].empty()) last[value] = static_cast<int64_t>(readers[value].back());
  }
  return last;
}

ValueTable<Life> StorageLives(const Plan& plan) {
  const std::vector<size_t> ends = StreamEnds(plan);
  const ValueTable<int32_t> last_reads = EndsOfReads(plan, ends);
  ValueTable<Life> lives(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (ValueId output : plan.instructions[i].outputs) {
      if (!output) continue;
      // All values of a storage keep it alive, so the life belongs to the root.
      Life& life = lives[plan.StorageOf(output)];
      if (life.first < 0) life.first = static_cast<int32_t>(i);
      // A value that nothing reads still needs its memory while it is written.
      life.last = std::max({life.last, static_cast<int32_t>(ends[i]), last_reads[output]});
    }
  }
  for (const ValueId value : plan.ids()) {
    if (lives[value].first < 0 || !plan[value].is_exclusive) continue;
    lives[value] = {.first = 0, .last = static_cast<int32_t>(plan.instructions.size())};
  }
  return lives;
}

std::optional<StreamWorkspace> WorkspaceOfStream(const Plan& plan, Place place) {
  if (plan.has_guards || !HasCommunicationStream(plan)) return std::nullopt;
  const std::vector<size_t> ends = StreamEnds(plan);
  StreamWorkspace workspace;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.stream == PlanStream::kMain || instruction.place != place) continue;
    const int64_t bytes = WorkspacesInRow(instruction).back();
    if (bytes == 0) continue;
    Life& life = workspace.life;
    if (life.first < 0) life.first = static_cast<int32_t>(i);
    life.last = std::max(life.last, static_cast<int32_t>(ends[i]));
    if (bytes > workspace.bytes) workspace.largest = i;
    workspace.bytes = std::max(workspace.bytes, bytes);
  }
  if (workspace.bytes == 0) return std::nullopt;
  return workspace;
}

std::vector<int64_t> WorkspacesInRow(const Instruction& instruction) {
  std::vector<int64_t> row;
  int64_t end = 0;
  for (const int64_t bytes : instruction.workspace_bytes) {
    row.push_back(RoundUp(end, kBufferAlignment));
    end = row.back() + bytes;
  }
  row.push_back(end);
  return row;
}

std::vector<int64_t> LiveBytes(const Plan& plan) {
  const ValueTable<Life> lives = StorageLives(plan);
  // The change at each instant. The sum below turns changes into live bytes.
  std::vector<int64_t> bytes(plan.instructions.size() + 2, 0);
  for (const ValueId value : plan.ids()) {
    const Life& life = lives[value];
    if (plan[value].storage != Storage::kArena || life.first < 0) continue;
    if (plan[value].place != plan.place) continue;
    bytes[static_cast<size_t>(life.first)] += StorageBytes(plan[value]);
    bytes[static_cast<size_t>(life.last) + 1] -= StorageBytes(plan[value]);
  }
  const std::vector<size_t> ends = StreamEnds(plan);
  const std::optional<StreamWorkspace> shared = WorkspaceOfStream(plan, plan.place);
  if (shared) {
    bytes[static_cast<size_t>(shared->life.first)] += shared->bytes;
    bytes[static_cast<size_t>(shared->life.last) + 1] -= shared->bytes;
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.place != plan.place) continue;
    if (shared && instruction.stream == PlanStream::kCommunication) continue;
    const std::vector<int64_t>& workspaces = instruction.workspace_bytes;
    const int64_t sum = std::accumulate(workspaces.begin(), workspaces.end(), int64_t{0});
    bytes[i] += sum;
    bytes[ends[i] + 1] -= sum;
  }
  // Drops the instant after the last instruction, at which only fetches live.
  bytes.resize(plan.instructions.size());
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

}  // namespace skiff
