// Outputs of ops that are known when a plan is made.
#pragma once

#include <optional>
#include <vector>

#include "framework/executor/rows/known_contents.h"
#include "framework/ir/program.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"

namespace skiff {

struct ConstantOutput {
  KnownContents::Contents contents;  // nullptr: the op leaves the output out
  AttributeMap attributes = {};      // of an assign_value that makes the contents
};

// Returns the outputs of the op for inputs whose contents are known, in OutputOrder. Returns
// nothing if a plan can't have constants instead of the op: the op can't be evaluated
// (MayEvaluate), refuses the data, makes more elements than a plan should know, or makes a tensor
// of a dtype that assign_value lacks. Throws an Error (kResourceExhausted) if there is no memory.
std::optional<std::vector<ConstantOutput>> ConstantOutputsOf(const OpRegistry& registry,
                                                             const Op& op, const OpDef& def,
                                                             std::vector<TensorMeta> inputs);

}  // namespace skiff
