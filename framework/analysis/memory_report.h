// A report on the arena of a plan, for people: the contents, and their lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// The memory of a value or a workspace, live from the first instruction that writes it to the last
// that reads it. `last` is the number of instructions if it is fetched. The workspaces of the
// communication stream are one buffer (StreamWorkspace), named after the instruction that needs all
// of it.
struct PlannedBuffer {
  std::string variable;  // empty: a workspace
  std::string op;        // the instruction that writes it first (Instruction::Name)
  std::string layer;     // the name scope of the op, if there is one
  std::string site;      // where that op was created: "models/resnet/resnet.cc:88"
  int64_t bytes = 0;
  int64_t offset = -1;  // -1: not planned yet
  int32_t first = 0;
  int32_t last = 0;
};

struct LoopMemory;

struct MemoryReport {
  int64_t max_live_bytes = 0;
  int64_t planned_bytes = 0;
  int64_t unshared_bytes = 0;
  Recomputed recomputed;
  size_t peak = 0;                    // the first instruction with the most live bytes
  std::vector<int64_t> live_bytes;    // by instruction
  std::vector<std::string> op_names;  // by instruction
  std::vector<PlannedBuffer> blocks;  // in the order in which they are first written
  std::vector<LoopMemory> loops;

  // Returns the blocks that are live at the peak, the largest first.
  std::vector<PlannedBuffer> BlocksAtPeak() const;
};

// The body of a loop or a branch. Its arena is a workspace of the instruction, once for all
// iterations.
struct LoopMemory {
  size_t instruction = 0;
  MemoryReport body;
};

// Returns a report on the plan. Offsets are -1 until storage is planned.
MemoryReport ReportMemory(const Plan& plan);

// Returns a text such as "37 ops are computed again, which saves 12.50 MiB for about 1.2 % of a
// step", or "" if nothing is computed again.
std::string RecomputationText(const Recomputed& recomputed);

// Returns a text such as "12.50 MiB".
std::string MebibytesText(int64_t bytes);

// Returns a text such as "conv2d_3.tmp_0: 12.50 MiB by conv2d in /res2/
// (models/resnet/resnet.cc:88)".
std::string DescribeBlock(const PlannedBuffer& block);
// Returns the instruction at the peak and up to `blocks` of the largest blocks live there, one per
// line. If it is a loop, the same for its body follows.
std::string DescribePeak(const MemoryReport& report, size_t blocks);

}  // namespace skiff
