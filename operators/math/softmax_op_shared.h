// What the definitions of softmax and log_softmax have in common.
#pragma once

#include <string>

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"

namespace skiff {

// The extents of a tensor along the attribute `axis`; the shape must be known.
AxisExtents SoftmaxExtents(const OpContext& context, const Shape& shape);

// Definitions of the op `type` from X to Out, both of one shape, and of its gradient op
// <type>_grad, which reads Out and Out@GRAD. `doc` is the formula, `out_doc` says what Out is.
OpDef SoftmaxDef(const std::string& type, const std::string& doc, const std::string& out_doc);
OpDef SoftmaxGradDef(const std::string& type, const std::string& doc);

}  // namespace skiff
