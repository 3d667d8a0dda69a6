// Update ops on lists of tensors that are stored contiguously ("flat").
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns whether ops of this definition take lists that may be flat; false for nullptr.
bool TakesFlatLists(const OpDef* def);

// Returns whether the lists of such an op are to be flat. kIsFlatAttr means nothing for any other
// op.
bool IsFlatUpdate(const OpDef* def, const Op& op);

// Returns whether the op updates parameters, rather than sums of gradients or averages of
// parameters.
bool UpdatesParameters(const Op& op);

// Returns the alignment of the tensors of a flat list, in bytes: `wanted`, but at least the size of
// an element, and just that if no tensor has more than one element. Lists of single numbers, such
// as powers of beta, can have thousands of entries, and no kernel loads vectors from them.
int64_t FlatAlignment(int64_t wanted, int64_t largest_bytes, DType dtype);

}  // namespace skiff
