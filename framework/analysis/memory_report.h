// What lies in the arena of a plan, and when: for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Memory that a value or a workspace takes, from the instruction that writes it first to the last
// one that reads it (the number of instructions: to the end, since it is fetched).
struct MemoryBlock {
  std::string variable;  // empty: a workspace
  std::string op;        // what writes it first: Instruction::Name
  std::string layer;     // the name scope of that op, if it has one
  std::string site;      // where that op was created: "models/resnet/resnet.cc:88"
  int64_t bytes = 0;
  int64_t offset = -1;  // -1: not planned yet
  int32_t first = 0;
  int32_t last = 0;
};

struct MemoryReport {
  int64_t max_live_bytes = 0;
  int64_t planned_bytes = 0;
  int64_t unshared_bytes = 0;
  size_t peak = 0;                    // the first instruction with the most live bytes
  std::vector<int64_t> live_bytes;    // by instruction
  std::vector<std::string> op_names;  // by instruction
  std::vector<MemoryBlock> blocks;    // in the order in which they are written

  // Those that live at the peak, the largest first.
  std::vector<MemoryBlock> BlocksAtPeak() const;
};

MemoryReport ReportMemory(const Plan& plan);

// "12.50 MiB".
std::string MebibytesText(int64_t bytes);

// "conv2d_3.tmp_0: 12.5 MiB by conv2d in /res2/ (models/resnet/resnet.cc:88)".
std::string DescribeBlock(const MemoryBlock& block);
// The instruction at the peak and the largest blocks that live there, a line each.
std::string DescribePeak(const MemoryReport& report, size_t blocks);

}  // namespace skiff
