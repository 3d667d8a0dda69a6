#include "framework/transpiler/order_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/dependencies.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/base/error.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "framework/transpiler/task_order.h"

namespace skiff {
namespace {

// The instructions of a plan as tasks, and its values in the arena as buffers with their numbers;
// views count as what they show.
class TaskGraphOfPlan {
 public:
  explicit TaskGraphOfPlan(const Plan& plan) : plan_(plan), buffers_(plan.values.size()) {
    for (const ValueId value : plan.ids()) buffers_[value] = static_cast<int32_t>(value.index());
  }

  TaskGraph Make() {
    for (const Instruction& instruction : plan_.instructions) JoinViews(instruction);
    AddBuffers();
    const std::vector<std::vector<size_t>> dependencies = Dependencies(plan_);
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      graph_.tasks.push_back(TaskOf(plan_.instructions[i]));
      graph_.tasks.back().after.assign(dependencies[i].begin(), dependencies[i].end());
    }
    return std::move(graph_);
  }

 private:
  int32_t BufferOf(ValueId value) const { return buffers_[value]; }

  // Returns the pairs whose values may share storage.
  std::vector<std::pair<ValueId, ValueId>> Sharing(const Instruction& instruction,
                                                   const InputOutputPairs& pairs) const {
    std::vector<std::pair<ValueId, ValueId>> sharing;
    for (const auto& [input, output] : pairs) {
      const ValueId from = instruction.inputs[static_cast<size_t>(input)];
      const ValueId to = instruction.outputs[static_cast<size_t>(output)];
      const bool may_share = MayShareStorage(plan_[from], plan_[to]);
      if (may_share) sharing.emplace_back(from, to);
    }
    return sharing;
  }

  void JoinViews(const Instruction& instruction) {
    for (const auto& [viewed, view] : Sharing(instruction, ViewPairs(plan_, instruction))) {
      buffers_[view] = BufferOf(viewed);
    }
  }

  void AddBuffers() {
    for (const PlanValue& value : plan_.values) {
      // Variables that share with nothing live all the time, whatever the order.
      const bool counts = value.storage == Storage::kArena && !value.is_exclusive;
      graph_.buffers.push_back({.bytes = counts ? StorageBytes(value) : 0});
    }
    for (const ValueId fetch : plan_.fetches) {
      graph_.buffers[static_cast<size_t>(BufferOf(fetch))].lives_to_end = true;
    }
  }

  TaskGraph::Task TaskOf(const Instruction& instruction) const {
    TaskGraph::Task task;
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      const ValueId input = instruction.inputs[j];
      if (input && instruction.reads_data[j]) task.buffers.push_back(BufferOf(input));
    }
    for (const auto& [from, to] : Sharing(instruction, InPlacePairs(plan_, instruction))) {
      // As in memory_reuse, which makes the final decision: the estimate here must follow its
      // rules.
      const bool is_read_once = std::ranges::count(task.buffers, BufferOf(from)) == 1;
      if (is_read_once && BufferOf(from) != BufferOf(to)) {
        task.in_place.emplace_back(BufferOf(from), BufferOf(to));
      }
    }
    for (const ValueId output : instruction.outputs) {
      if (output) task.buffers.push_back(BufferOf(output));
    }
    std::erase_if(task.buffers, [&](int32_t buffer) {
      return graph_.buffers[static_cast<size_t>(buffer)].bytes == 0;
    });
    std::ranges::sort(task.buffers);
    task.buffers.erase(std::ranges::unique(task.buffers).begin(), task.buffers.end());
    task.workspace_bytes = std::accumulate(instruction.workspace_bytes.begin(),
                                           instruction.workspace_bytes.end(), int64_t{0});
    return task;
  }

  const Plan& plan_;
  TaskGraph graph_;
  ValueTable<int32_t> buffers_;
};

// Returns how many instructions have to move to get this order: all except a longest ascending
// subsequence (patience sorting, O(n log n)).
int64_t MovedCount(const std::vector<int32_t>& order) {
  // ends[k] is the least last element of an ascending subsequence of length k + 1.
  std::vector<int32_t> ends;
  for (const int32_t i : order) {
    const auto end = std::ranges::lower_bound(ends, i);
    if (end == ends.end()) {
      ends.push_back(i);
    } else {
      *end = i;
    }
  }
  return static_cast<int64_t>(order.size() - ends.size());
}

}  // namespace

PassReport OrderPass::Apply(const PassContext& context, Plan* plan) const {
  const PassReport left = {.pass = {}, .changes = 0, .summary = "no order takes less"};
  if (context.memory.policy == ReusePolicy::kNone) return left;
  const std::vector<int32_t> order = OrderForMemory(TaskGraphOfPlan(*plan).Make());
  const int64_t moved = MovedCount(order);
  if (moved == 0) return left;
  Plan ordered = *plan;
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.instructions[i] = plan->instructions[static_cast<size_t>(order[i])];
  }
  // The task graph is an approximation of sharing, so the gain is checked on the plan itself.
  const int64_t before = MostLiveBytesWithReuse(context, *plan);
  const int64_t after = MostLiveBytesWithReuse(context, ordered);
  if (after >= before) return left;
  *plan = std::move(ordered);
  return {.pass = {},
          .changes = moved,
          .summary = StrCat(moved, " instructions moved, ", after,
                            " bytes live at most instead of ", before)};
}

}  // namespace skiff
