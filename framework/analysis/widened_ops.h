// Tells which ops of a plan compute in float32 for want of a kernel that takes half.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/plan/plan.h"

namespace skiff {

// Returns how many ops of each type the pass widen has put casts around, those in the bodies of
// loops included. Empty for a plan without half.
std::map<std::string, int64_t> WidenedOps(const Plan& plan);

}  // namespace skiff
