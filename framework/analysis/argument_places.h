// Where the arguments of an instruction must be.
#pragma once

#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Return the place of each input and output: the place where the instruction runs, except for
// arguments that the op keeps or reads on the host (PlaceOfSlot), and values that the body of a
// loop has there (body_places.h). Not for copies, whose values are anywhere.
std::vector<Place> InputPlaces(const Instruction& instruction);
std::vector<Place> OutputPlaces(const Instruction& instruction);
// Returns whether a loop needs an input on the CPU and on its device.
bool NeedsInputOnBoth(const Instruction& loop);

// Throws an Error (kFailedPrecondition) that names an instruction which reads or writes data in
// another place, if there is one.
void CheckPlaces(const Plan& plan);

}  // namespace skiff
