// docs/operators.md, made from the registry.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// A section for each op that has a gradient or is none, in the order of the types: what it
// computes, slots, attributes with their defaults, kernels, its gradient op, and how it differs
// from PaddlePaddle. `known_differences` is the text of tests/oracle/known_differences.txt.
std::string OperatorDocs(const OpRegistry& registry, std::string_view known_differences);

}  // namespace skiff
