// Writes to memory that several tensors share: two variables of a scope, or of two scopes. A form
// that is made of a variable's values, such as packed weights, learns of writes to that variable
// from its version (Scope::Version), but not of those to another one in the same memory.
#pragma once

#include <cstdint>

#include "framework/tensor/tensor.h"

namespace skiff {

// Counts a write to the elements of a tensor whose buffer another tensor shares, and returns
// whether it is one. Must follow the write. One count tells of all writes before it. Thread-safe.
bool NoteWrite(const Tensor& written);
// Returns how many were counted in this process. Thread-safe.
uint64_t SharedWrites();

}  // namespace skiff
