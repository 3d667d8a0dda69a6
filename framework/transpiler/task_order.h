// Orders tasks so that the buffers that they work on take little memory at any time.
//
// The best order is NP-hard to find (Sethi, SIAM J. Comput. 4, 1975). This one starts from a given
// order and asks for a bit less memory, again and again. Wherever the next task would take more
// than that, others go first that together let go of a buffer: its last readers, and what these
// wait for. Then the same from the last task to the first, where it is the makers of buffers that
// are put off.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace skiff {

// Tasks and buffers are numbered from 0. The numbers of the tasks are an order in which they may
// run.
struct TaskGraph {
  // Lives from the first task that uses it to the last one.
  struct Buffer {
    int64_t bytes = 0;
    bool lives_from_start = false;  // from before the first task
    bool lives_to_end = false;      // to behind the last task
  };
  struct Task {
    std::vector<int32_t> after;    // tasks that must run before this one
    std::vector<int32_t> buffers;  // that it uses, each once
    // Buffers of one size that it uses: where the first one's life ends and the second one's
    // begins, they are one piece of memory.
    std::vector<std::pair<int32_t, int32_t>> in_place;
    int64_t workspace_bytes = 0;  // what it takes besides, while it runs
  };
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
};

// By position in the order, the bytes that are live while that task runs.
std::vector<int64_t> LiveBytes(const TaskGraph& graph, const std::vector<int32_t>& order);

// Gains below this share of the most live bytes are left: neither what is lost by moving tasks nor
// how well an arena meets its bound is known that well.
inline constexpr double kLeastGain = 1.0 / 256;

// An order in which the tasks may run. It is that of their numbers, unless another one is found
// whose most live bytes are less by kLeastGain or more. The same for the same graph, in about
// linear time.
std::vector<int32_t> OrderForMemory(const TaskGraph& graph);

}  // namespace skiff
