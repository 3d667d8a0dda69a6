// Sums of products by an equation. Errors of all layers: layers.h.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Returns the sums of products of operands that the equation asks for, as torch.einsum and
// numpy.einsum: "bij,bjk->bik" multiplies matrices (einsum_equation.h). Each axis has a letter.
// Axes of a letter share an index, and the einsum sums over an index that the result lacks. "..."
// stands for axes without a letter. An extent of 1 is repeated along another operand's extent. A
// letter twice in a term takes the diagonal. Without "->" the result has the axes of "...", then
// the letters that are in the equation once, in alphabetical order.
//
// The ops are transpositions and products, two operands at a time, from the left, which passes
// fuse: products of matrices where an index of both is summed, else elementwise products. Operands
// of whole numbers may not be summed. An unknown extent is taken for the extent of the same letter
// elsewhere, unless that is 1.
//
// Throws an Error (kInvalidArgument) if the equation isn't valid or doesn't fit the operands; if it
// sums whole numbers; if a diagonal's extent is unknown; if a product of matrices has an extent of
// 0, or several unknown extents, among axes that a reshape must part; or if a step has more than 9
// axes. (A product of matrices has the axes that both operands and its result have, and two more.)
Variable Einsum(const std::string& equation, const std::vector<Variable>& operands,
                Site site = Site::current());

}  // namespace skiff::layers
