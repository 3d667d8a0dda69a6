#include "operators/tensor/kernels/strided_selection.h"

#include <algorithm>
#include <cstdlib>

#include "framework/base/error.h"
#include "operators/tensor/kernels/data_mover.h"

namespace skiff {

void SelectionCopy::Run(const KernelContext& run, const void* source, void* target) const {
  MoverOf(run).Copy(run, copy, static_cast<const char*>(source) + source_offset_bytes,
                    static_cast<char*>(target) + target_offset_bytes);
}

// Returns the range with bounds from the front, but -1 for the end of a walk down that includes
// element 0. No sum or product of what it returns overflows.
StridedSelection::Range StridedSelection::FromFront(const Range& range, int64_t extent,
                                                    SelectionRule rule) {
  // A stride larger than the tensor selects one element, whatever its size, and a bound of 2^62 is
  // beyond every tensor.
  constexpr int64_t kFar = int64_t{1} << 62;
  const int64_t whole = std::max<int64_t>(extent, 1);
  const int64_t stride = std::clamp(range.stride, -whole, whole);
  const bool is_down = stride < 0;
  const bool includes_first = is_down && range.end == -1;
  const bool clamps = rule == SelectionRule::kSetValue;
  if (clamps && extent == 0) return {.start = 0, .end = is_down ? -1 : 0, .stride = stride};
  const int64_t start = range.start < 0 ? range.start + extent : range.start;
  const int64_t end = range.end < 0 && !includes_first ? range.end + extent : range.end;
  const int64_t last_start = clamps ? extent - (is_down ? 1 : 0) : kFar;
  const int64_t least_end = includes_first || (clamps && is_down) ? -1 : 0;
  return {.start = std::clamp<int64_t>(start, 0, last_start),
          .end = std::clamp(end, least_end, clamps ? extent : kFar),
          .stride = stride};
}

StridedSelection::Walk StridedSelection::WalkAlong(const Range& range, int64_t extent,
                                                   SelectionRule rule, const std::string& what) {
  const auto [start, end, stride] = FromFront(range, extent, rule);
  const auto text = [&] {
    return StrCat(what, ": start ", range.start, ", end ", range.end, ", stride ", range.stride,
                  " along an extent of ", extent);
  };
  SKIFF_ENFORCE(stride > 0 ? start <= end : start >= end, kInvalidArgument, text(),
                ": the end is on the wrong side of the start");
  // The range of the elements is [low, high).
  const int64_t low = stride > 0 ? start : end + 1;
  const int64_t high = std::min(extent, stride > 0 ? end : start + 1);
  SKIFF_ENFORCE(low <= extent, kOutOfRange, text(), ": the range is beyond the tensor");
  const int64_t count = (high - low + std::abs(stride) - 1) / std::abs(stride);
  return {stride > 0 ? low : high - 1, stride, count};
}

StridedSelection::StridedSelection(const OpContext& context, const Shape& input, SelectionRule rule)
    : input_(input), extent_(input) {
  const std::string& op = context.op().type;
  const char* strides_attr = rule == SelectionRule::kSetValue ? "steps" : "strides";
  const std::vector<int64_t> axes = context.IntsAttr("axes");
  const std::vector<int64_t> starts = context.IntsAttr("starts");
  const std::vector<int64_t> ends = context.IntsAttr("ends");
  const std::vector<int64_t> strides = context.IntsAttr(strides_attr);
  const bool are_known =
      context.Knows("starts") && context.Knows("ends") && context.Knows(strides_attr);
  const bool fit =
      starts.size() == axes.size() && ends.size() == axes.size() && strides.size() == axes.size();
  SKIFF_ENFORCE(fit || !are_known, kInvalidArgument, op, ": ", starts.size(), " starts, ",
                ends.size(), " ends and ", strides.size(), " ", strides_attr, " for ", axes.size(),
                " axes");
  for (int axis = 0; axis < input.rank(); ++axis) walks_[axis].count = input[axis];
  std::array<bool, Shape::kMaxRank> seen{};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis(axes[i], input.rank(), op + ": axes");
    SKIFF_ENFORCE(!seen[axis], kInvalidArgument, op, ": axes = [", Join(axes, ", "),
                  "] names axis ", axis, " twice");
    seen[axis] = true;
    keeps_rows_ = keeps_rows_ && axis != 0;
    if (!are_known) {
      extent_[axis] = -1;
      continue;
    }
    SKIFF_ENFORCE(strides[i] != 0, kInvalidArgument, op, ": the stride of axis ", axis, " is 0");
    if (input[axis] < 0) continue;
    walks_[axis] =
        WalkAlong({starts[i], ends[i], strides[i]}, input[axis], rule, StrCat(op, ": axis ", axis));
    extent_[axis] = walks_[axis].count;
  }
}

SelectionCopy StridedSelection::CopyOut(DType dtype) const {
  SelectionCopy result;
  // Without elements there is no first one.
  if (extent_.element_count() == 0) return result;
  auto input_strides = RowMajorStrides(input_);
  const int64_t bytes = SizeOf(dtype);
  for (int axis = 0; axis < input_.rank(); ++axis) {
    result.source_offset_bytes += walks_[axis].first * input_strides[axis] * bytes;
    input_strides[axis] *= walks_[axis].stride;
  }
  result.copy = StridedCopy(extent_.dims(), input_strides, RowMajorStrides(extent_), bytes);
  return result;
}

SelectionCopy StridedSelection::CopyIn(std::array<int64_t, Shape::kMaxRank> strides,
                                       DType dtype) const {
  SelectionCopy result;
  if (extent_.element_count() == 0) return result;
  auto input_strides = RowMajorStrides(input_);
  const int64_t bytes = SizeOf(dtype);
  for (int axis = 0; axis < input_.rank(); ++axis) {
    const Walk& walk = walks_[axis];
    result.target_offset_bytes += walk.first * input_strides[axis] * bytes;
    input_strides[axis] *= walk.stride;
    // StridedCopy writes in the order of the target's memory, so that is walked upwards.
    if (walk.stride > 0) continue;
    result.target_offset_bytes += (walk.count - 1) * input_strides[axis] * bytes;
    result.source_offset_bytes += (walk.count - 1) * strides[axis] * bytes;
    input_strides[axis] = -input_strides[axis];
    strides[axis] = -strides[axis];
  }
  result.copy = StridedCopy(extent_.dims(), strides, input_strides, bytes);
  return result;
}

}  // namespace skiff
