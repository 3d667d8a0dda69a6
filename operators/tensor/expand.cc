// expand: Out = X repeated expand_times[i] times along axis i.
//
// Source: Fluid's expand. The gradient sums Out@GRAD over the copies.
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/tensor/kernels/repetition.h"

namespace skiff {
namespace {

Repetition ExpandRepetition(const OpContext& context, const Shape& x,
                            const std::vector<int64_t>& times) {
  const std::string& op = context.op().type;
  SKIFF_ENFORCE(times.size() == static_cast<size_t>(x.rank()), kInvalidArgument, op,
                ": expand_times = [", Join(times, ", "), "] for X of shape ", x,
                ", expected one number per dim");
  Repetition repetition{.dims = x, .times = Shape(std::span<const int64_t>(times)), .out = x};
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t count = repetition.times[axis];
    SKIFF_ENFORCE(count > 0, kOutOfRange, op, ": expand_times = [", Join(times, ", "),
                  "], expected positive numbers");
    if (x[axis] >= 0) repetition.out[axis] = MultiplyCounts(x[axis], count);
  }
  return repetition;
}

}  // namespace

void RegisterExpand(OpRegistry& registry) {
  AddRepeatOps(registry, {.type = "expand",
                          .doc = "Out = X repeated expand_times[i] times along axis i.",
                          .attr = "expand_times",
                          .attr_doc = "How often to repeat X, one number for each dim.",
                          .tensor_slot = "ExpandTimes",
                          .tensor_list_slot = "expand_times_tensor",
                          .repetition = ExpandRepetition});
}

}  // namespace skiff
