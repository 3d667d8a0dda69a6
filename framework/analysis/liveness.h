// From when to when the values of a plan live, and what memory that takes.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// By value, the last of its DataReaders; -1: none reads it. What every liveness of a plan is made
// of.
std::vector<int64_t> LastReads(const Plan& plan);

// From the instruction that writes a storage first to the last one that reads any value there; a
// fetch is behind the last instruction. -1: never written. Variables in Plan::memory.skip live from
// the first instruction to behind the last.
struct Life {
  int32_t first = -1;
  int32_t last = -1;
};

// By value, the life of the storage of which it is the root.
std::vector<Life> StorageLives(const Plan& plan);

// By instruction, the bytes of the arena's values and known workspaces that are live while it runs.
std::vector<int64_t> LiveBytes(const Plan& plan);

}  // namespace skiff
