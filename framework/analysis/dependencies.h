// In which orders the instructions of a plan may run.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Whether the instruction refuses some data of an input that it has (SlotDef::checks_data).
bool ChecksData(const Instruction& instruction);

// Whether nothing may pass the instruction, and it may be neither dropped nor run twice: it has a
// side effect, or sub-blocks.
bool MustStay(const Instruction& instruction);

// By instruction, those that have to stay before it, so that all orders that keep to this compute
// the same and, if an instruction throws, leave the same in the scope:
// - who reads data stands behind who writes it, and before who writes its storage next; writes of
//   one storage keep their order. Values of the scope lie in one storage if they have one name;
// - nothing passes an instruction that MustStay;
// - nothing that writes the scope passes an instruction that checks data, and these keep their
//   order, so that the same one refuses first.
// What follows from others on the list may be left out.
std::vector<std::vector<size_t>> Dependencies(const Plan& plan);

}  // namespace skiff
