// Orders tasks such that the buffers take little memory at any time.
//
// The best order is NP-hard to find (Sethi, SIAM J. Comput. 4, 1975). This algorithm starts from a
// given order and asks for a bit less memory, again and again. Wherever the next task would take
// more than the limit, tasks go first that together free a buffer: the buffer's last readers, and
// the tasks that must run before these. A second sweep runs from the last task to the first and
// puts off the makers of buffers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace skiff {

// Tasks and buffers are numbered from 0. The numbers of the tasks are an order in which they may
// run.
struct TaskGraph {
  // A buffer lives from the first to the last task that uses it.
  struct Buffer {
    int64_t bytes = 0;
    bool lives_from_start = false;  // from before the first task
    bool lives_to_end = false;      // to after the last task
  };
  struct Task {
    std::vector<int32_t> after;    // tasks that must run before this task
    std::vector<int32_t> buffers;  // used buffers, each once
    // Pairs of buffers of one size that the task uses. If the life of the first ends here and the
    // life of the second begins, both are one piece of memory.
    std::vector<std::pair<int32_t, int32_t>> in_place;
    int64_t workspace_bytes = 0;  // taken in addition while it runs
  };
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
};

// Returns the bytes that are live while each task runs, by position in the order.
std::vector<int64_t> LiveBytes(const TaskGraph& graph, const std::vector<int32_t>& order);

// Smaller gains, as a share of the most live bytes, don't count: the cost of moving tasks, and how
// well an arena meets its bound, aren't known that precisely.
inline constexpr double kLeastGain = 1.0 / 256;

// Returns an order in which the tasks may run: the order of their numbers, unless another order is
// found whose most live bytes are less by at least kLeastGain. Equal graphs get equal orders. Takes
// about linear time.
std::vector<int32_t> OrderForMemory(const TaskGraph& graph);

}  // namespace skiff
