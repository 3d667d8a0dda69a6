// What adam has in common with the optimizers built on it, adamw and lamb.
#pragma once

#include <string>
#include <vector>

#include "operators/optimizer/update_kernel_shared.h"
#include "operators/optimizer/update_op_shared.h"

namespace skiff {

// The slots and attributes of adam.
UpdateOp MakeAdamOp(std::string type, std::string doc);
std::vector<UpdateOp::State> AdamMoments();
std::vector<UpdateOp::State> AdamPowers();
// beta1, beta2, epsilon.
std::vector<AttrDef> AdamAttrs(float epsilon);

}  // namespace skiff
