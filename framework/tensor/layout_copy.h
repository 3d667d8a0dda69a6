// Copies between layouts.
#pragma once

#include "framework/tensor/tensor.h"

namespace skiff {

// Copies `from` into `to`, zeroing the padding if `to` is blocked. Both are on the CPU and have
// equal shape and dtype; each is plain or channel-blocked. Allocates nothing. Throws Error if the
// tensors don't match.
void CopyBetweenLayouts(const Tensor& from, Tensor* to);

}  // namespace skiff
