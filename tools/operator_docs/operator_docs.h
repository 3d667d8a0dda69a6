// Generates docs/operators.md from the registry.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// Returns the text. It has a section for each op except gradient ops of other ops, in the order of
// the types: the result, slots, attributes and defaults, kernels, gradient op, and differences from
// PaddlePaddle. `known_differences` is the text of tests/oracle/known_differences.txt.
std::string OperatorDocs(const OpRegistry& registry, std::string_view known_differences);

}  // namespace skiff
