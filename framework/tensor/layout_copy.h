// Copies between layouts.
#pragma once

#include "framework/tensor/tensor.h"

namespace skiff {

// Copies `from` into `to`: equal shape and dtype, CPU; each may be plain or channel-blocked. The
// padding of a blocked `to` becomes zero. Allocates nothing. Error if they don't match.
void CopyBetweenLayouts(const Tensor& from, Tensor* to);

}  // namespace skiff
