// Generates docs/operators.md from the registry.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// Returns the text: a section for each op that isn't a gradient op or has a gradient itself, in the
// order of the types, with what it computes, slots, attributes and defaults, kernels, its gradient
// op, and how it differs from PaddlePaddle. `known_differences` is the text of
// tests/oracle/known_differences.txt.
std::string OperatorDocs(const OpRegistry& registry, std::string_view known_differences);

}  // namespace skiff
