// Writes to memory that several tensors share: two variables of a scope, or of two scopes. A form
// made of a variable's values, such as packed weights, learns of writes to the variable from its
// version (Scope::Version). The version doesn't tell of writes to another variable in the same
// memory.
#pragma once

#include <cstdint>

#include "framework/tensor/tensor.h"

namespace skiff {

// Counts a write to a tensor whose buffer another tensor shares, and returns true. Returns false if
// no other tensor shares the buffer. Must follow the write. One count tells of all writes before
// it. Thread-safe.
bool NoteWrite(const Tensor& written);
// Returns how many were counted in this process. Thread-safe.
uint64_t SharedWrites();

}  // namespace skiff
