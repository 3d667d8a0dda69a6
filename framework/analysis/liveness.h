// When the values of a plan live, and how much memory that takes.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Returns, for each value, the last of its DataReaders, or -1 if none reads it. All liveness of a
// plan is based on this.
ValueTable<int64_t> LastReads(const Plan& plan);

// The life of a storage: from the first instruction that writes the storage to the last that reads
// a value in it. A fetch counts as a read after the last instruction. An instruction of the
// communication stream reads and writes until the main stream has waited for it (StreamEnds).
// `first` is -1 if nothing writes it. Values that are is_exclusive live from the first instruction
// to after the last.
struct Life {
  int32_t first = -1;
  int32_t last = -1;
};

// Returns, for each value, the life of the storage of which it is the root.
ValueTable<Life> StorageLives(const Plan& plan);

// Returns, for each instruction, the bytes of arena values and known workspaces that are live while
// it runs.
std::vector<int64_t> LiveBytes(const Plan& plan);

}  // namespace skiff
