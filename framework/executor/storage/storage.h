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
// Plan::contiguous holds whatever the policy: with kArena each value of a list still gives its
// space to others before and after its life, with any other policy the values of a list do so
// together. Throws what ContiguousSlices and PlanWithPolicy throw.
void PlanStorage(Plan* plan);

// Returns the alignment of a value in the arena, or in memory of its own. Between guards it is that
// of an element where nothing needs more, so that nothing is between its end and the guard.
int64_t AlignmentOf(const Plan& plan, DType dtype, Layout layout);

// Returns memory of a plan outside of its arena, between guards if the arena has any. Throws an
// Error (kResourceExhausted) if there is none.
std::shared_ptr<Buffer> NewBlock(const Plan& plan, Place place, int64_t bytes, MemoryTag tag);

// Return where the values of a plan on the CPU lie in its arena, where the workspaces of an
// instruction do, and both of all.
std::vector<ByteRange> ValueRanges(const Plan& plan);
std::vector<ByteRange> WorkspaceRanges(const Instruction& instruction);
std::vector<ByteRange> UsedRanges(const Plan& plan);

}  // namespace skiff
