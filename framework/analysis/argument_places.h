// Where the arguments of an instruction must be.
#pragma once

#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Return the place of each input and output: that where the instruction runs, but for states that
// its op keeps on the host (PlaceOfSlot). Not for copies, whose values are anywhere.
std::vector<Place> InputPlaces(const Instruction& instruction);
std::vector<Place> OutputPlaces(const Instruction& instruction);

// Throws an Error (kFailedPrecondition) that names an instruction which reads or writes data in
// another place, if there is one.
void CheckPlaces(const Plan& plan);

}  // namespace skiff
