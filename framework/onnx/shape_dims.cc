#include "framework/onnx/shape_dims.h"

#include <algorithm>
#include <limits>

#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"

namespace skiff {

Variable DimsOf(const Variable& x, int64_t begin, int64_t end) {
  const Variable dims = layers::Cast(layers::ShapeOf(x), DType::kInt64);
  return layers::Slice(dims, {.axes = {0}, .starts = {begin}, .ends = {end}});
}

Variable ReshapedToParts(const Variable& x, const std::vector<Variable>& parts) {
  return layers::ReshapeTo(x, parts.size() == 1 ? parts[0] : layers::Concat(parts, 0));
}

bool CanReshape(const std::vector<int64_t>& dims) {
  return std::ranges::count_if(dims, [](int64_t dim) { return dim < 0; }) <= 1 &&
         std::ranges::count(dims, 0) == 0;
}

std::pair<int64_t, int64_t> SlicedPart(int64_t start, int64_t end, int64_t count) {
  const auto from_front = [count](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const int64_t begin = from_front(start);
  return {begin, std::max(begin, from_front(end))};
}

Variable IndicesFromFront(const Variable& indices, const Variable& x, int64_t axis) {
  const Variable wide =
      indices.dtype() == DType::kInt64 ? indices : layers::Cast(indices, DType::kInt64);
  const int64_t extent = x.dims()[static_cast<size_t>(axis)];
  const Variable zero = layers::FullLike(wide, 0.0);
  if (extent >= 0) return layers::Where(wide < zero, wide + static_cast<double>(extent), wide);
  const Variable count = DimsOf(x, axis, axis + 1);
  // A vector would make a vector of a single index.
  const Variable same_rank = RankOf(wide) == 0 ? layers::Reshape(count, {}) : count;
  return layers::Where(wide < zero, wide + same_rank, wide);
}

int64_t Within32(int64_t number) {
  return std::clamp<int64_t>(number, std::numeric_limits<int32_t>::min() + 1,
                             std::numeric_limits<int32_t>::max());
}

}  // namespace skiff
