// Moves the variables of a scope to the place where a program runs.
#pragma once

#include "framework/base/place.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Moves the persistables of the program that the scope holds to `place`, or to the CPU if an op
// keeps them there (PlaceOfSlot). Advances the generation of the scope if it moves any.
void MoveToPlaces(const OpRegistry& registry, const Program& program, Place place, Scope* scope);

}  // namespace skiff
