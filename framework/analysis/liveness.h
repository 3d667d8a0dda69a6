// When the values of a plan live, and how much memory that takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/place.h"
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

// The memory for all workspaces of the communication stream on a place. Instructions of the stream
// run one after the other, so each one's workspaces begin where the memory begins. It lives from
// the first instruction of the stream with a workspace to the end of the last (StreamEnds).
struct StreamWorkspace {
  Life life;
  size_t largest = 0;  // the first instruction that needs all of the memory
  int64_t bytes = 0;
};

// Returns nullopt if no instruction of the communication stream on the place has a workspace, and
// in a plan with guards, in which each workspace has memory of its own.
std::optional<StreamWorkspace> WorkspaceOfStream(const Plan& plan, Place place);

// Returns where the workspaces of an instruction lie behind each other, from 0 on, and as the last
// entry the bytes of all.
std::vector<int64_t> WorkspacesInRow(const Instruction& instruction);

// Returns, for each instruction, the bytes of arena values and known workspaces that are live while
// it runs.
std::vector<int64_t> LiveBytes(const Plan& plan);

}  // namespace skiff
