// Attributes, shape rules and definitions of the ops that reduce over the axes `dim`.
#pragma once

#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/reduce.h"

namespace skiff {

// Returns `dim`, `keep_dim`, `reduce_all`, `in_dtype` and `out_dtype`. Fluid declares the axes of
// some reductions as longs.
std::vector<AttrDef> ReductionAttributes(AttrType type_of_dim = AttrType::kInts);

// Returns for each axis of X whether the op reduces it: all of them with reduce_all or an empty
// `dim`. Throws Error for an axis that X doesn't have or that is listed twice.
AxisFlags ReducedAxes(const OpContext& context);
// Returns the shape of X without the reduced axes, or with dims of 1 there (keep_dim).
Shape ReducedShape(const OpContext& context);

// The shape rules of the op and of its gradient op. Out has `dtype`. Throw Error unless in_dtype is
// -1 or X's dtype, and out_dtype -1 or `dtype`.
void InferReduction(OpContext& context, DType dtype);
void InferReductionGrad(OpContext& context);

// Throws Error if an output would be reduced from no elements of X. For reductions without a value
// for that.
void CheckSomethingIsReduced(std::string_view op, const Shape& x, const AxisReduction& reduction);

// Return the definitions of a reduction, to X's dtype, and of <type>_grad. `doc` is the formula.
// `forward_slots`, of X and Out, are those that the gradient op takes besides Out@GRAD.
OpDef ReductionDef(StaticText type, StaticText doc, const std::vector<StaticText>& forward_slots);
OpDef ReductionGradDef(StaticText type, StaticText doc,
                       const std::vector<StaticText>& forward_slots, bool reads_x);

}  // namespace skiff
