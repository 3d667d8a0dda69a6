// Computes an op when a plan is made, from elements that are known by then
// (TensorMeta::contents): by the op's own kernel, so that no formula is written twice.
#pragma once

#include <memory>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Returns whether inputs, attributes and shapes alone determine the results of the op, and the
// outputs are few dense elements: it draws no numbers, has no side effect and reads no LoD. A shape
// that isn't known, as while a program is built, counts as one of few elements. Says nothing of
// whether the contents of its inputs are known.
bool MayEvaluate(const OpContext& context);

// Returns the outputs, in the order of OutputOrder, nullptr for @EMPTY@. All inputs must have known
// contents, except inputs of which only the shape counts (SlotDef::shape_only). Throws what the
// kernel throws, and an Error (kUnimplemented) if there is none or if the op makes more than a few
// elements: takes no memory for them.
std::vector<std::shared_ptr<const Tensor>> Evaluate(const OpRegistry& registry,
                                                    const OpContext& context);

}  // namespace skiff
