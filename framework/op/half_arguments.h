// How ops take *half*, which is float16 and bfloat16: shape rules and float32 kernels see float32
// in its place. So neither of them is written again for half.
//
// The rule holds for every op except those with Precision::kNone, where the op's own rules know
// half. Inputs of which only the shape is read don't count: their dtype has no say.
#pragma once

#include <optional>
#include <string>

#include "framework/op/op_context.h"

namespace skiff {

// Returns whether an argument in the slot is half where the op computes in half: its data counts,
// the slot doesn't keep float32, and the slot gives no attribute.
bool FollowsHalf(const SlotDef& slot);

// Returns whether shape rules and kernels of the op see float32 in place of half: it takes no
// arrays, runs no block, and its precision isn't kNone.
bool IsWidened(const OpContext& context);

// Returns the dtype of the half data that the op reads or writes; nothing if there are none or
// IsWidened is false. All float inputs have this dtype, except inputs that don't follow half.
std::optional<DType> HalfOfArguments(const OpContext& context);

// Returns whether a kernel for half takes the arguments: floats that the op reads and writes are
// half, except for float32 in the slots that keep float32. True if IsWidened is false.
bool HasDTypesOfHalfKernel(const OpContext& context);

// Returns the attribute by which the op, or a default, names a dtype (AttrDef::names_dtype); empty
// if none does.
std::string NamedDType(const OpDef& def, const Op& op);

// Returns the context with float32 in place of half everywhere.
OpContext Widened(const OpContext& context);

// Runs the shape rule, `infer`, on the widened context, and gives each output that the rule
// makes float32 its dtype: a gradient that of its input, if the op has that input; an output that
// keeps float32 gets the dtype of the input whose next value the output is, else float32; all
// others half, if a float input is. Returns false and does nothing if no input is half. Throws
// Error: kInvalidArgument for inputs whose dtypes don't fit together, kUnimplemented if an
// attribute names half, or another dtype than half inputs have (AttrDef::names_dtype), and what
// `infer` throws.
bool InferHalfOutputs(OpContext* context, void (*infer)(OpContext*));

}  // namespace skiff
