// On which layouts the element-wise kernels run.
//
// An element-wise op whose tensors have one shape and one layout may walk over the storage as it
// lies, the zero padding of a blocked layout included. Only ops that OpDef marks zero-preserving
// are planned like that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/op_context.h"

namespace skiff {

// Whether the tensors of the slots (inputs or outputs; absent ones don't count) have one shape and
// one layout.
bool SameShapeAndLayout(const OpContext& context, const std::vector<std::string>& slots);

// Whether the tensors of the slots are all plain.
bool SlotsArePlain(const OpContext& context, const std::vector<std::string>& slots);

// Elements of the tensor as it lies.
int64_t StorageElements(const TensorMeta& meta);

}  // namespace skiff
