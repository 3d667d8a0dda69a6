// Checks that shape rules have in common.
#pragma once

#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// Error, naming the op and `slot`, unless input `slot` has the shape `expected` and the dtype.
// Selected rows have the shape of the dense tensor that they stand for.
void CheckInputLike(const OpContext& context, std::string_view slot, const Shape& expected,
                    DType dtype);

// The same for the gradient of a sum, but one element may have any rank: Fluid's scalars were [1]
// before they were [].
void CheckGradientLike(const OpContext& context, std::string_view slot, const Shape& expected,
                       DType dtype);

// Error unless input `slot` has one element, as far as its dims are known. An absent one passes.
void CheckOneElement(const OpContext& context, std::string_view slot);

}  // namespace skiff
