// The elements of a tensor as text, for print and assert.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "framework/tensor/tensor.h"

namespace skiff {

// Writes the first `limit` elements, or all if `limit` is negative, to `stream`: "[1 2.5 nan]".
// Allocates nothing itself.
void WriteElements(const Tensor& tensor, int64_t limit, std::FILE* stream);
// Returns the same as a string.
std::string ElementsAsText(const Tensor& tensor, int64_t limit);

}  // namespace skiff
