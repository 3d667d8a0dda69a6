// Sums of products by an equation. Errors of all layers: layers.h.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// The sums of products of operands that the equation asks for, as torch.einsum and numpy.einsum:
// "bij,bjk->bik" multiplies matrices. Each axis has a letter; axes of the same letter are an index;
// indices that the result lacks are summed. "..." stands for leading axes. An extent of 1 is
// repeated along another operand's. A letter twice in a term takes the diagonal. Without "->" the
// result has the axes of "...", then the letters that are there once, in their order. It is a
// composition of transpositions and products, two operands at a time, from the left: products of
// matrices where an index of both is summed, else elementwise ones. Operands of whole numbers may
// not be summed.
//
// An unknown extent is taken for the extent of the same letter elsewhere, unless this is 1.
//
// Throws an Error (kInvalidArgument) if the equation doesn't fit the operands or isn't one; if it
// sums whole numbers; if a diagonal's extent is unknown; if a product of matrices has an extent of
// 0, or several unknown ones, among axes that a reshape must part; or if a step has more than 9
// axes: a product of matrices has two besides the axes that both operands and the result have.
Variable Einsum(const std::string& equation, const std::vector<Variable>& operands,
                Site site = Site::current());

}  // namespace skiff::layers
