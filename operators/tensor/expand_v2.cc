// expand_v2: Out = X broadcast to `shape`.
//
// Source: Fluid's expand_v2. `shape` is aligned with X at the last dim. -1 keeps the dim of X; a
// dim of X that differs from `shape` must be 1. The gradient sums Out@GRAD over the copies.
#include "framework/base/error.h"
#include "operators/tensor/kernels/repetition.h"

namespace skiff {
namespace {

Repetition BroadcastRepetition(const OpContext& context, const Shape& x,
                               const std::vector<int64_t>& values) {
  const std::string& op = context.op().type;
  const Shape shape{std::span<const int64_t>(values)};
  SKIFF_ENFORCE(shape.rank() >= x.rank(), kInvalidArgument, op, ": shape = [", Join(values, ", "),
                "] has fewer dims than X of shape ", x);
  Repetition repetition{.dims = WithLeadingOnes(x, shape.rank()), .times = shape, .out = shape};
  const int new_dims = shape.rank() - x.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t dim = repetition.dims[axis];
    const bool keeps = shape[axis] == -1 && axis >= new_dims;
    SKIFF_ENFORCE(keeps || shape[axis] > 0, kOutOfRange, op, ": shape = [", Join(values, ", "),
                  "] has ", shape[axis], " as dim ", axis, "; expected a positive number",
                  axis >= new_dims ? " or -1" : " for a dim that X doesn't have");
    SKIFF_ENFORCE(keeps || dim < 0 || dim == 1 || dim == shape[axis], kInvalidArgument, op,
                  ": X of shape ", x, " doesn't broadcast to shape = [", Join(values, ", "),
                  "] at dim ", axis);
    if (keeps) repetition.out[axis] = dim;
    repetition.times[axis] = keeps || dim == shape[axis] ? 1 : shape[axis];
  }
  return repetition;
}

}  // namespace

void RegisterExpandV2(OpRegistry& registry) {
  AddRepeatOps(registry, {.type = "expand_v2",
                          .doc = "Out = X broadcast to `shape`.",
                          .attr = "shape",
                          .attr_doc = "The dims of Out; -1 keeps that of X.",
                          .tensor_slot = "Shape",
                          .tensor_list_slot = "expand_shapes_tensor",
                          .repetition = BroadcastRepetition});
}

}  // namespace skiff
