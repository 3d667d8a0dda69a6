// The layouts that element-wise kernels accept.
//
// If all tensors of an element-wise op have the same shape and layout, its kernel may walk over
// their storage in order, including the zero padding of a blocked layout. Plans do so only for ops
// that OpDef marks zero-preserving.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/static_text.h"
#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Returns whether the tensors of the slots (inputs or outputs) all have the same shape and layout.
// Ignores absent ones.
bool SameShapeAndLayout(const OpContext& context, const std::vector<StaticText>& slots);

// Returns whether the tensors of the slots are all plain.
bool SlotsArePlain(const OpContext& context, const std::vector<StaticText>& slots);

// Returns the number of elements in the tensor's storage, padding included.
int64_t StorageElements(const Tensor& tensor);

}  // namespace skiff
