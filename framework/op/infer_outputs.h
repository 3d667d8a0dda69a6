// Runs the shape rule of an op, and checks what no rule checks: arguments that no op may have.
#pragma once

#include <cstddef>
#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// Runs the shape rule, for half as half_arguments.h says. Throws Error, naming slot and variable,
// for selected rows in a slot whose SlotDef::selected_rows is false, and for an input that can't
// give its attribute.
void InferOutputs(OpContext* context);

// Throws Error unless input i of `slot`, a gradient, has the shape and dtype of `of`. One element
// may have any rank.
void CheckGradient(const OpContext& context, std::string_view slot, size_t i, const TensorMeta& of);

// Returns the op of the context with the attributes that inputs give (SlotDef::attribute), and
// without these inputs. All of them must be known.
Op WithGivenAttributes(const OpContext& context);

}  // namespace skiff
