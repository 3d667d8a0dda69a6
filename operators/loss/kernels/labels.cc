#include "operators/loss/kernels/labels.h"

#include <optional>

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/input_checks.h"

namespace skiff {

Shape LossShape(const Shape& scores, int axis) {
  Shape shape = scores;
  shape[axis] = 1;
  return shape;
}

Shape RowLossShape(const Shape& scores, const Shape& label) {
  Shape losses(scores.dims().first(static_cast<size_t>(scores.rank() - 1)));
  if (label.rank() == scores.rank()) losses.Append(1);
  return losses;
}

namespace {

void CheckDims(std::string_view where, const Shape& label, const Shape& expected) {
  SKIFF_ENFORCE(DimsAgree(label.dims(), expected.dims()), kInvalidArgument, where,
                ": Label is of shape ", label, ", expected ", expected);
}

}  // namespace

void CheckLabel(std::string_view where, const TensorMeta& scores, const TensorMeta& label, int axis,
                bool is_soft) {
  if (is_soft) {
    SKIFF_ENFORCE(label.dtype == scores.dtype, kInvalidArgument, where, ": a soft Label is ",
                  label.dtype, ", expected ", scores.dtype, " as the scores");
    return CheckDims(where, label.shape, scores.shape);
  }
  SKIFF_ENFORCE(label.dtype == DType::kInt64 || label.dtype == DType::kInt32, kInvalidArgument,
                where, ": Label is ", label.dtype, ", expected int64 or int32");
  const Shape expected = LossShape(scores.shape, axis);
  // Labels may leave out the axis of the classes, or keep it as a dim of 1.
  if (label.shape.rank() != scores.shape.rank() - 1) {
    return CheckDims(where, label.shape, expected);
  }
  Shape without_axis;
  for (int i = 0; i < expected.rank(); ++i) {
    if (i != axis) without_axis.Append(expected[i]);
  }
  CheckDims(where, label.shape, without_axis);
}

void ThrowLabel(std::string_view where, int64_t item, int64_t label, int64_t classes,
                int64_t ignore_index) {
  Throw(ErrorCode::kOutOfRange, where, ": the label of row ", item, " is ", label,
        ", expected a class in [0, ", classes, ") or ignore_index = ", ignore_index);
}

void ThrowIfFound(const FirstBadIndex& bad, std::string_view where, const LabelReader& labels,
                  int64_t classes, int64_t ignore_index) {
  const std::optional<int64_t> item = bad.Find();
  if (item) ThrowLabel(where, *item, labels[*item], classes, ignore_index);
}

}  // namespace skiff
