// Moves the variables of a scope to the place where a program runs.
#pragma once

#include "framework/base/place.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Moves the persistables that the program declares and the scope holds to `place`, also from
// another device, or to the CPU if an op keeps the variable there (PlaceOfSlot). If all variables
// of a buffer move, the new buffer is shared, too. Advances the generation of the scope if a
// variable moves. Throws an Error (kResourceExhausted) that names the variable if there is no
// memory; nothing has moved then.
void MoveToPlaces(const OpRegistry& registry, const Program& program, Place place, Scope* scope);

}  // namespace skiff
