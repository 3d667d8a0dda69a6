// Shape rules and reshaping, for many ops of this family.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/all_dtypes.h"

namespace skiff {

// Returns a shape of which nothing but the rank is known.
Shape UnknownDims(int64_t rank);

// Returns the product of dims [begin, end), or -1 if one is unknown and none is 0.
int64_t ProductOrUnknown(const Shape& shape, int begin, int end);

// Sets the LoD level of output i of `slot`: with `same_rows` the level of `input`, else 0.
void SetLodLevel(OpContext& context, bool same_rows, std::string_view input = "X",
                 std::string_view slot = "Out", size_t i = 0);

// Returns `extent` without the dims that the attribute decrease_axis names. Throws Error if one
// isn't 1.
Shape WithoutDecreasedAxes(const OpContext& context, const Shape& extent);

// Sets Out to `shape` with X's dtype (and LoD level if the rows stay the same), and XShape to [0] +
// X's dims, which is how Fluid hands the shape of X to the gradient.
void SetReshapedOutput(OpContext& context, const Shape& shape);

// Returns the dims of X, which input XShape of a gradient op carries. Throws Error unless XShape is
// [0] + dims and has the dtype of Out@GRAD.
Shape DimsInXShape(const OpContext& context);

// Returns the definition of the output XShape.
SlotDef XShapeOutput();
// Registers a gradient op `type` of `forward`, which gives Out@GRAD the shape of X, with its
// kernels. `unused` are inputs that Fluid's has besides.
void AddReshapeGrad(OpRegistry& registry, StaticText type, StaticText forward,
                    std::vector<SlotDef> unused = {});
// Returns the gradient rule that makes such an op.
GradRule ReshapeGradRule(StaticText grad_type);

// Returns the factory of a kernel that copies the elements of one slot to another, in order.
KernelFactory CopyFactory(StaticText input, StaticText output);

}  // namespace skiff
