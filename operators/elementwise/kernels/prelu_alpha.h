// How prelu's Alpha is broadcast to X. So prelu is a binary op, and the sums of Alpha@GRAD are
// those of a broadcast operand.
#pragma once

#include <array>

#include "framework/op/op_context.h"
#include "framework/tensor/shape.h"
#include "operators/common/broadcast.h"

namespace skiff {

// The axes of X along which Alpha varies.
using AlphaAxes = std::array<bool, Shape::kMaxRank>;

AlphaAxes AlphaAxesOf(const OpContext& context);
// Returns the shape with which Alpha is broadcast to X.
Shape AlphaShape(const Shape& x, const AlphaAxes& axes);
Broadcast BroadcastOfAlpha(const Shape& x, const AlphaAxes& axes);

}  // namespace skiff
