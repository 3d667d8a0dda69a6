// Plans where the arena holds the values and workspaces of a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/place.h"
#include "framework/plan/plan.h"
#include "memory/allocator.h"
#include "memory/byte_range_set.h"

namespace skiff {

// Sets the offset of every arena value and workspace, in the arena of its place, and the plan's
// byte counts. A value lives from the instruction that writes it to the last that reads it, or to
// the end if it is fetched. Values whose lives don't meet share space as the plan's `reuse` says.
// Workspaces of the communication stream share theirs whatever it says (StreamWorkspace).
// The lists of Plan::contiguous are contiguous with every policy. With kArena, other values use the
// space of each value of a list before and after the value's life; with any other policy, only
// before and after the lives of the whole list. Throws the Errors of ContiguousSlices and
// PlanWithPolicy.
void PlanStorage(Plan* plan);

// Returns the alignment of a value in the arena, or in memory of its own. Between guards it is the
// alignment of an element where nothing needs more, so that no bytes lie between the value's end
// and the guard.
int64_t AlignmentOf(const Plan& plan, DType dtype, Layout layout);

// Returns memory of a plan outside of its arena, between guards if the arena has any. Throws an
// Error (kResourceExhausted) if there is none.
std::shared_ptr<Buffer> NewBlock(const Plan& plan, Place place, int64_t bytes, MemoryTag tag);

// Return the bytes that are in use in the arena of a plan on the CPU: by its values, by the
// workspaces of an instruction, and by all values and workspaces.
std::vector<ByteRange> ValueRanges(const Plan& plan);
std::vector<ByteRange> WorkspaceRanges(const Instruction& instruction);
std::vector<ByteRange> UsedRanges(const Plan& plan);

}  // namespace skiff
