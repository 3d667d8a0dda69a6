// Programs in half: the rewriting before gradients are appended, and loss scaling as ops.
#pragma once

#include <optional>
#include <source_location>

#include "framework/builder/variable.h"
#include "framework/precision/half_rewrite.h"
#include "framework/precision/loss_scaling.h"
#include "framework/precision/precision_options.h"

namespace skiff {

// Makes the default programs compute in this precision (RewriteToHalf), except for the loss. Does
// nothing for float32.
std::optional<HalfReport> RewriteDefaultPrograms(const Variable& loss,
                                                 const PrecisionOptions& precision,
                                                 const std::source_location& site);

// Returns the loss scaling of a program in this precision; nothing if there is none.
std::optional<LossScaling> ScalingOf(const PrecisionOptions& precision);

namespace internal {

// The variables of a loss scale.
struct LossScale {
  Variable scale;    // float32 [1]
  Variable inverse;  // 1 / scale
};

}  // namespace internal
using internal::LossScale;

// Makes the persistables of one scale: kLossScale, or kLossScale_<n> if another loss, maybe of
// another program of the same startup program, has that name. Throws an Error (kInvalidArgument)
// for a scale, a growth or a backoff that isn't positive and finite, a growth below 1, a backoff
// above 1 or an interval below 1. Warns of factors that aren't powers of two, since gradients then
// lose digits.
LossScale AppendLossScale(const LossScaling& scaling, const std::source_location& site);

// Returns whether a program has a loss scale.
bool HasLossScale(const Block& root);

// Returns loss * scale, of the loss's shape.
Variable ScaledLoss(const Variable& loss, const LossScale& scale, const std::source_location& site);

// Changes scale and counters after a run, if the scaling is dynamic. `broken`, a bool [1]: whether
// a gradient isn't finite. `skip`: a bool [1] that is true in runs that don't count; may be
// undefined.
void AppendScaleUpdate(const LossScaling& scaling, const LossScale& scale, const Variable& broken,
                       const Variable& skip, const std::source_location& site);

}  // namespace skiff
