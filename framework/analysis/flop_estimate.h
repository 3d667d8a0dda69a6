// What matrix products and convolutions compute, from their shapes.
#pragma once

#include <optional>

#include "framework/op/op_context.h"

namespace skiff {

// FLOP (a multiply-add is 2) of one run by the textbook formulas, for mul, matmul, matmul_v2, bmm,
// addmm, the convolutions conv2d, depthwise_conv2d and conv3d, the transposed ones of these, and
// the gradient ops of all, where each gradient of a factor that is computed counts as much as the
// forward op. Nothing for other ops. Element-wise work isn't counted, nor is what a kernel saves
// (Winograd). Every dim must be known.
std::optional<double> EstimateFlop(const OpContext& context);

}  // namespace skiff
