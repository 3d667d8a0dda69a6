// What the code of Skiff asks of tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/tensor/api/tensor.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"
#include "memory/allocator.h"

namespace skiff {

// Returns a level's offsets for sequences of these lengths. Throws Error (kInvalidArgument) for a
// negative length.
std::vector<uint64_t> OffsetsOf(std::span<const int64_t> lengths);

// Throws Error unless `lod` is valid for a tensor with `rows` rows.
void CheckLoD(const LoD& lod, int64_t rows);

// Copies the bytes of `from` to `to`, on any places. Throws Error unless shape, dtype and layout
// are equal.
void CopyTensor(const Tensor& from, Tensor* to);

}  // namespace skiff
