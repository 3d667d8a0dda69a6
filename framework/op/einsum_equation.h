// The equation of an einsum, such as "bij,jk->bik": the sums of products that it asks for, as in
// torch.einsum and numpy.einsum. Each axis has a letter. Axes of a letter share an index, and the
// einsum sums over an index that the result lacks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/shape.h"

namespace skiff {

// The letters of all axes, a term for each operand and one for the result. "..." stands for the
// axes that a term doesn't name. They have the digits …, 3, 2, 1 as letters: in each operand the
// last of them is '1', so digits align as broadcasting does.
struct EinsumTerms {
  std::vector<std::string> operands;
  std::string result;
};

// Returns the letters of the axes of operands of these shapes, whose dims may be -1, and of the
// result. Spaces don't count. Without "->", the result has the axes of "...", then the letters that
// are in the equation once, in alphabetical order.
//
// Throws an Error (kInvalidArgument) if a term has characters other than letters and one "...", if
// there aren't as many terms as operands, if a term doesn't fit the rank of its operand, or if the
// result has a letter twice or a letter that no operand has.
EinsumTerms ParseEinsum(std::string_view equation, std::span<const Shape> operands);

}  // namespace skiff
