// tile: Out = X repeated repeat_times[i] times along axis i.
//
// Source: Fluid's tile: an expand after leading dims of 1 are added to the shorter of X's shape and
// repeat_times. The gradient sums Out@GRAD over the copies.
#include <algorithm>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/tensor/kernels/repetition.h"

namespace skiff {
namespace {

Repetition TileRepetition(const OpContext& context, const Shape& x,
                          const std::vector<int64_t>& times) {
  const Shape given{std::span<const int64_t>(times)};
  const int rank = std::max(x.rank(), given.rank());
  Repetition repetition{.dims = WithLeadingOnes(x, rank),
                        .times = WithLeadingOnes(given, rank),
                        .out = WithLeadingOnes(x, rank)};
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t count = repetition.times[axis];
    SKIFF_ENFORCE(count > 0, kOutOfRange, context.op().type, ": repeat_times = [",
                  Join(times, ", "), "], expected positive numbers");
    int64_t& dim = repetition.out[axis];
    if (dim >= 0) dim = MultiplyCounts(dim, count);
  }
  return repetition;
}

}  // namespace

void RegisterTile(OpRegistry& registry) {
  AddRepeatOps(registry,
               {.type = "tile",
                .doc = "Out = X repeated repeat_times[i] times along axis i.",
                .attr = "repeat_times",
                .attr_doc = "How often to repeat X, one number per dim, aligned at the last.",
                .tensor_slot = "RepeatTimes",
                .tensor_list_slot = "repeat_times_tensor",
                .repetition = TileRepetition});
}

}  // namespace skiff
