// Where the two streams of a plan (PlanStream) wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Returns whether an instruction of the plan is in the communication stream.
bool HasCommunicationStream(const Plan& plan);

// Returns Instruction::waits_for of each instruction: as few waits as are needed. An instruction of
// the main stream waits for the instructions of the other stream that write its inputs, or that use
// storage which it overwrites. A collective instruction in the main stream waits for the whole
// other stream, since only one thread at a time may use a communicator.
std::vector<int32_t> StreamWaits(const Plan& plan);

// Returns, for each instruction, the instruction from which on its work is known to be over: itself
// in the main stream, and else the first one after it whose wait includes it. The number of
// instructions if only the end of the run waits. The last entry, one more than there are
// instructions, is that number, too: fetches are read then.
std::vector<size_t> StreamEnds(const Plan& plan);

// Returns a message for each instruction that is in the wrong stream, or waits for too little:
// - an instruction in the communication stream that isn't collective, or is in the body of a loop;
// - a wait in the communication stream, or for an instruction that doesn't come before;
// - an instruction that must wait longer (StreamWaits).
std::vector<std::string> StreamMistakes(const Plan& plan);

}  // namespace skiff
