// Generates docs/operators.md from the registry.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// Returns the text. It has a section for each op that isn't the gradient op of another one, in the
// order of the types: what the op computes, its slots, attributes and defaults, kernels, gradient
// op, and differences from PaddlePaddle. `known_differences` is the text of
// tests/oracle/known_differences.txt.
std::string OperatorDocs(const OpRegistry& registry, std::string_view known_differences);

}  // namespace skiff
