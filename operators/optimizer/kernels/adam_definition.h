// The parts of adam's definition that adamw and lamb share.
#pragma once

#include <vector>

#include "operators/optimizer/kernels/update_op.h"

namespace skiff {

// Returns an op with the slots and attributes of adam.
UpdateOp MakeAdamOp(StaticText type, StaticText doc);
std::vector<UpdateOp::State> AdamMoments();
std::vector<UpdateOp::State> AdamPowers();
// Returns beta1, beta2 and epsilon, which has the given default.
std::vector<AttrDef> AdamAttrs(float epsilon);

}  // namespace skiff
