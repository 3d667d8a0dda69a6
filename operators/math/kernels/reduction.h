// Attributes, shape rules and definitions of the ops that reduce over the axes `dim`.
#pragma once

#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cpu/reduce.h"

namespace skiff {

// Returns `dim`, `keep_dim`, `reduce_all`, `in_dtype` and `out_dtype`. Fluid declares the axes of
// some reductions as longs.
std::vector<AttrDef> ReductionAttributes(AttrType type_of_dim = AttrType::kInts);

// The attributes besides reduce_all that say which dims are reduced.
struct ReductionAttrNames {
  std::string_view dims = "dim";
  std::string_view keep_dim = "keep_dim";
};

// Returns for each axis of X whether the op reduces it: all of them with reduce_all or an empty
// list of dims. Throws Error for an axis that X doesn't have or that is listed twice.
AxisFlags ReducedAxes(const OpContext& context, const ReductionAttrNames& names = {});
// Returns the shape of X without the reduced axes, or with dims of 1 there (keep_dim).
Shape ReducedShape(const OpContext& context, const ReductionAttrNames& names = {});
// Sets Out to ReducedShape in `dtype`. If axis 0 stays, Out takes over the LoD level.
void SetReducedOutput(OpContext& context, DType dtype, const ReductionAttrNames& names = {});

// The shape rule. Out has `dtype`. Throws Error unless in_dtype is -1 or X's dtype, and out_dtype
// -1 or `dtype`.
void InferReduction(OpContext& context, DType dtype);

// Throws Error if an output would be reduced from no elements of X. For reductions without a value
// for that.
void CheckSomethingIsReduced(std::string_view op, const Shape& x, const AxisReduction& reduction);

// Returns the definition of a reduction, to X's dtype, without a gradient. `doc` is the formula.
OpDef ReductionDef(StaticText type, StaticText doc);

}  // namespace skiff
