#include "operators/tensor/kernels/along_axis.h"

#include <algorithm>
#include <optional>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/first_bad_index.h"

namespace skiff {
namespace {

constexpr int64_t kRefused = -1;  // the place of an index outside the axis

}  // namespace

int AxisOfIndex(const OpContext& context, std::string_view slot) {
  const int64_t axis = context.IntAttr("Axis");
  const Shape& tensor = context.Input(slot).shape;
  // PaddlePaddle's kernels take a negative axis for another one.
  SKIFF_ENFORCE(axis >= 0, kOutOfRange, context.op().type, ": Axis = ", axis, ", expected [0, ",
                tensor.rank(), ") for ", slot, " of shape ", tensor);
  return AxisIndex(context, tensor, axis);
}

void CheckIndexAlongAxis(const OpContext& context, std::string_view slot) {
  CheckIndexDType(context, "Index");
  const Shape& tensor = context.Input(slot).shape;
  const Shape& index = context.Input("Index").shape;
  const int axis = AxisOfIndex(context, slot);
  bool fits = index.rank() == tensor.rank();
  for (int dim = 0; fits && dim < index.rank(); ++dim) {
    fits = dim == axis || index[dim] < 0 || tensor[dim] < 0 || index[dim] <= tensor[dim];
  }
  SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": Index has shape ", index,
                ", expected the rank of ", slot, " of shape ", tensor,
                " and no larger dim than it, except that of axis ", axis);
}

AlongAxis::AlongAxis(const Shape& tensor, const Shape& index, int axis)
    : tensor_count_(tensor.element_count()),
      index_(ExtentsOfAxis(index, axis)),
      dims_(index.rank() == 0 ? Shape{1} : index) {
  int64_t stride = 1;
  for (int dim = tensor.rank() - 1; dim >= 0; --dim) {
    strides_[static_cast<size_t>(dim)] = dim == axis ? 0 : stride;
    if (dim == axis) {
      axis_stride_ = stride;
      length_ = tensor[dim];
    }
    stride *= tensor[dim];
  }
}

void AlongAxis::Resolve(const Tensor& indices, std::string_view op, int64_t* places,
                        std::string_view slot) const {
  const int last = dims_.rank() - 1;
  const int64_t run = dims_[last];
  const int64_t step = stride(last);
  VisitIndices(indices, [&](const auto* numbers) {
    // The loop has no branch for a bad index; a thread looks for it afterwards, in the places,
    // since another thread may meanwhile write to a feed.
    FirstBadIndex first_bad;
    ParallelFor(count(), 8192, [&](int64_t begin, int64_t end) {
      std::array<int64_t, Shape::kMaxRank> at = {};  // of a run along the last dim
      int64_t base = 0;
      int64_t rest = begin / run;
      for (int dim = last - 1; dim >= 0; --dim) {
        at[static_cast<size_t>(dim)] = rest % dims_[dim];
        base += rest % dims_[dim] * stride(dim);
        rest /= dims_[dim];
      }
      bool any_bad = false;
      int64_t in_run = begin % run;
      for (int64_t i = begin; i < end; in_run = 0) {
        const int64_t part_end = std::min(end, i + run - in_run);
        for (int64_t place = base + in_run * step; i < part_end; ++i, place += step) {
          const int64_t number = numbers[i];
          const bool is_bad = static_cast<uint64_t>(number) >= static_cast<uint64_t>(length_);
          any_bad |= is_bad;
          places[i] = is_bad ? kRefused : place + number * axis_stride_;
        }
        for (int dim = last - 1; dim >= 0; --dim) {
          int64_t& position = at[static_cast<size_t>(dim)];
          base += stride(dim);
          if (++position < dims_[dim]) break;
          base -= position * stride(dim);
          position = 0;
        }
      }
      if (any_bad) first_bad.Record(std::find(places + begin, places + end, kRefused) - places);
    });
    const std::optional<int64_t> bad = first_bad.Find();
    SKIFF_ENFORCE(!bad, kOutOfRange, op, ": ", slot, "[", *bad, "] = ", numbers[*bad],
                  " is outside [0, ", length_, ")");
  });
}

}  // namespace skiff
