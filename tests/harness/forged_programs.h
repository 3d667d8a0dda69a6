// Texts of programs whose claims nobody has checked: gradient ops without their forward half, names
// and shapes as a file may have them. Which claims hold is up to the arguments.
#pragma once

#include <string>

namespace skiff::harness {

// xg = the gradient of a memory x [1, 2], of an Out@GRAD of `shape`.
std::string ShrinkGrad(const std::string& shape);
// r = the gradient of the element [3, 1] of an array that is stacked, of an Out@GRAD of `shape`.
std::string JoinGrad(const std::string& shape);
// ygo = the gradient of a variable [2] before a branch that isn't taken ("conditional"), or before
// a loop without iterations ("while"); after it, ygo is the gradient of a variable of `shape`.
std::string BlockGrad(const std::string& type, const std::string& shape,
                      const std::string& variable = "y");
// xg = the gradient of x [3, 2], of which a recurrent op makes outputs; `gradient` is the name of
// theirs: og [3, 2], few [2, 2] or never, which nobody writes.
std::string RecurrentGrad(const std::string& gradient);
// z of those of `chosen` sevens where the feed `given`, float32 of that shape, isn't 0; the op that
// chooses the sevens calls them the gradient of a variable of the shape `rows`.
std::string MadeRows(const std::string& rows, const std::string& chosen);
// out = x - m for a feed x [-1, 2] of sequences, step by step in a loop, in whose body `ops` make m
// [2] of the rows xs of a step.
std::string WithStep(const std::string& ops);

}  // namespace skiff::harness
