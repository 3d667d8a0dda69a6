// Mistakes in the texts and names of fusions.
#pragma once

#include <vector>

#include "framework/op/registry.h"
#include "framework/transpiler/fusion.h"

namespace skiff {

// Throws an Error (kInvalidArgument), which names the wrong name, if a fusion
// - names a slot or an attribute that the op lacks (an op that the registry lacks isn't checked);
// - is the gradient of a value that its pattern, or the pattern of an earlier fusion, lacks;
// - names a value, in the new ops or anywhere else, that no pattern has: its own, or the pattern of
//   a fusion that it may be the gradient of;
// - names a value that its own pattern doesn't write as the output of an op (FusedOp::at, origin,
//   arguments_of, attributes_of, and the keys of Fusion::instead);
// - makes no op or several ops in one FusedOp;
// - names a value in FusedOp::if_read, or as a replacement in Fusion::instead, that no new op
// writes.
void CheckFusions(const OpRegistry& registry, const std::vector<Fusion>& fusions);

}  // namespace skiff
