// The kinds of sequence_pool.
#pragma once

#include "framework/op/op_context.h"

namespace skiff {

enum class SequencePooling { kSum, kAverage, kSqrt, kMax, kFirst, kLast };

// Returns the kind that attribute pooltype names. Throws Error for another name.
SequencePooling PoolingOf(const OpContext& context);

}  // namespace skiff
