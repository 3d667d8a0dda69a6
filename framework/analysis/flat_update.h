// Update ops on lists whose tensors lie one behind the other.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Whether ops of this definition (nullptr: none) take lists that may lie flat.
bool TakesFlatLists(const OpDef* def);

// Whether the lists of such an op shall lie flat. Of any other op kIsFlatAttr means nothing.
bool IsFlatUpdate(const OpDef* def, const Op& op);

// Whether it is parameters that the op updates: not sums of gradients, nor of parameters.
bool UpdatesParameters(const Op& op);

// The tensors of a list begin at multiples of this: of what the options ask for, or, if none has
// more than one element, of an element's size. Of numbers, powers of beta for example, there are
// thousands, and no vector is made of them.
int64_t FlatAlignment(int64_t wanted, int64_t largest_bytes, DType dtype);

}  // namespace skiff
