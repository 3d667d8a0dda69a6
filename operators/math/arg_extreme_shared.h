// arg_max and arg_min: the place of the largest or smallest element along an axis.
#pragma once

#include <string>

#include "framework/op/registry.h"

namespace skiff {

// Of equal elements the one further to the front counts; NaN is the largest and the smallest.
void RegisterArgExtreme(OpRegistry& registry, const std::string& type, bool is_max);

}  // namespace skiff
