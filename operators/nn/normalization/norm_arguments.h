// The arguments that all normalizations share.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "framework/op/op_context.h"

namespace skiff {

// Returns the attribute `epsilon`, which is at least 0.
AttrDef EpsilonAttr();
// Returns the attribute `act_type`, which is always relu.
AttrDef ReluTypeAttr();

// Throws Error unless each slot that is present has `size` values (-1: unknown) of the dtype of the
// op's first input. In the message, `meaning` says what there is one value for.
void CheckVectors(const OpContext& context, std::initializer_list<const char*> slots, int64_t size,
                  const char* meaning);

}  // namespace skiff
