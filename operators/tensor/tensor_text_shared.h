// Elements of a tensor for people: print and assert.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "framework/tensor/tensor.h"

namespace skiff {

// Writes "[1 2.5 nan]" to `stream`: the first `limit` elements, all if it is negative. Allocates
// nothing of its own.
void WriteElements(const Tensor& tensor, int64_t limit, std::FILE* stream);
// The same as a string.
std::string ElementsAsText(const Tensor& tensor, int64_t limit);

}  // namespace skiff
