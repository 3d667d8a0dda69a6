// expand_as_v2: Out = X broadcast to the shape of Y, or to target_shape.
//
// Source: PaddlePaddle's expand_as_v2. The shape is aligned with X at the last dim; a dim of X that
// differs from it must be 1. The gradient sums Out@GRAD over the copies.
#include "framework/base/error.h"
#include "operators/tensor/kernels/repetition.h"

namespace skiff {
namespace {

// Returns the dims of Y or, as a gradient op has no Y, those of target_shape, which PaddlePaddle
// writes beside Y with -1 for what it doesn't know. Without both, Out@GRAD has them.
Shape TargetOf(const OpContext& context, const std::vector<int64_t>& target_shape) {
  const bool is_gradient = context.def().FindInput("Y") == nullptr;
  if (!is_gradient && context.HasInput("Y")) return context.Input("Y").shape;
  if (is_gradient && target_shape.empty()) return context.Input("Out@GRAD").shape;
  const Shape target{std::span<const int64_t>(target_shape)};
  SKIFF_ENFORCE(is_gradient || target.is_known(), kInvalidArgument, context.op().type,
                ": target_shape = ", target, " without Y, expected no negative dims");
  return target;
}

Repetition ExpandAsRepetition(const OpContext& context, const Shape& x,
                              const std::vector<int64_t>& values) {
  const std::string& op = context.op().type;
  const Shape target = TargetOf(context, values);
  SKIFF_ENFORCE(target.rank() >= x.rank(), kInvalidArgument, op, ": the target ", target,
                " has fewer dims than X of shape ", x);
  Repetition repetition{.dims = WithLeadingOnes(x, target.rank()), .times = target, .out = target};
  for (int axis = 0; axis < target.rank(); ++axis) {
    const int64_t dim = repetition.dims[axis];
    SKIFF_ENFORCE(dim < 0 || dim == 1 || target[axis] < 0 || dim == target[axis], kInvalidArgument,
                  op, ": X of shape ", x, " doesn't broadcast to ", target, " at dim ", axis);
    // A dim other than 1 is that of the target.
    if (dim >= 0 && dim != 1) repetition.out[axis] = dim;
    if (dim == target[axis] || repetition.out[axis] == dim) repetition.times[axis] = 1;
  }
  return repetition;
}

}  // namespace

void RegisterExpandAsV2(OpRegistry& registry) {
  AddRepeatOps(registry, {.type = "expand_as_v2",
                          .doc = "Out = X broadcast to the shape of Y, or to target_shape.",
                          .attr = "target_shape",
                          .attr_doc = "The dims of Out if there is no Y.",
                          .shape_slot = {.name = "Y",
                                         .doc = "A tensor of the shape of Out.",
                                         .dispensable = true,
                                         .shape_only = true},
                          .repetition = ExpandAsRepetition});
}

}  // namespace skiff
