// The definitions of softmax and log_softmax.
#pragma once

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"

namespace skiff {

// Returns the attribute `axis` as an index of `shape`.
int SoftmaxAxis(const OpContext& context, const Shape& shape);

// Return the definitions of the op `type` from X to Out, of the same shape, and of the gradient op
// of `forward`, which reads Out and Out@GRAD. `doc` is the formula; `out_doc` describes Out.
OpDef SoftmaxDef(StaticText type, StaticText doc, StaticText out_doc);
OpDef SoftmaxGradDef(OpDef* forward, StaticText doc);

}  // namespace skiff
