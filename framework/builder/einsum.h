// Sums of products by an equation. What all layers throw: activation.h.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// The sums of products of operands of floats that the equation asks for, as torch.einsum and
// numpy.einsum: "bij,bjk->bik" multiplies matrices. Each axis has a letter; axes of one letter are
// one index, and those that the result lacks are summed. "..." stands for leading axes, whose
// extents of 1 are broadcast. A letter twice in a term takes the diagonal. Without "->" the result
// has the axes of "...", then the letters that are there once, in their order. It is a composition
// of transpositions and products of matrices, two operands at a time, from the left.
//
// Throws an Error (kInvalidArgument) if the equation doesn't fit the operands or isn't one; if a
// diagonal's extent is unknown; or if a product has several unknown dims where a reshape must make
// them.
Variable Einsum(const std::string& equation, const std::vector<Variable>& operands,
                Site site = Site::current());

}  // namespace skiff::layers
