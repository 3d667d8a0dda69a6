// Checks that several shape rules share.
#pragma once

#include <initializer_list>
#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// Throws Error, naming the op and `slot`, unless input `slot` has the shape `expected` and the
// dtype. For selected rows, the shape is that of the dense tensor they represent.
void CheckInputLike(const OpContext& context, std::string_view slot, const Shape& expected,
                    DType dtype);

// Throws Error if the known dims of input `slot` rule out a single element. An absent input passes.
void CheckOneElement(const OpContext& context, std::string_view slot);
// The same; throws Error for an input of another dtype, too.
void CheckOneElement(const OpContext& context, std::string_view slot,
                     std::initializer_list<DType> dtypes);

}  // namespace skiff
