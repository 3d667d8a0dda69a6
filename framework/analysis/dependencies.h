// Tells in which orders the instructions of a plan may run.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Returns whether the instruction may throw because of data: an op with an input that is
// checks_data, or with output shapes that depend on data; a loop with such an op in its body, or
// with a condition, which may hold too often.
bool ChecksData(const Instruction& instruction);

// Returns whether its kernel, on a device, may refuse data there (host_slots.h). False for a loop:
// a body on a device has no op that does.
bool MayNoteFault(const Instruction& instruction);

// Returns whether the instruction, or one in the body, has a side effect. No instruction may then
// move past it.
bool MustStay(const Instruction& instruction);

// Returns whether the instruction may be neither dropped nor run twice: it must stay, or it is
// collective (OpDef::collective).
bool MustRunOnce(const Instruction& instruction);

// Returns whether the instruction exchanges data with other ranks (OpDef::collective).
bool IsCollective(const Instruction& instruction);

// Returns, for each instruction, the instructions that must stay before it. All orders that respect
// this compute the same results and, if an instruction throws, leave the same values in the scope:
// - A reader of data stays after its writer, and before the next writer of the same storage. Writes
//   of one storage keep their order, and scope values of one name share storage.
// - No instruction moves past one that MustStay.
// - Collective instructions keep their order.
// - Instructions that check data keep their order, so the same instruction rejects first. No
//   instruction that writes the scope moves past them.
//
// Dependencies that follow from others in the list may be omitted.
std::vector<std::vector<size_t>> Dependencies(const Plan& plan);
// Returns only those for the first reason: readers and writers of data.
std::vector<std::vector<size_t>> DataDependencies(const Plan& plan);

}  // namespace skiff
