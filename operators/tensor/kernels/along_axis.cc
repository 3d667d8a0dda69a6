#include "operators/tensor/kernels/along_axis.h"

#include "framework/base/error.h"

namespace skiff {

int AxisOfIndex(const OpContext& context, std::string_view slot) {
  return AxisIndex(context, context.Input(slot).shape, context.IntAttr("Axis"));
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

void AlongAxis::Resolve(const Tensor& indices, std::string_view op, int64_t* places) const {
  const int last = dims_.rank() - 1;
  const int64_t run = dims_[last];
  std::array<int64_t, Shape::kMaxRank> at = {};
  int64_t base = 0;
  VisitIndices(indices, [&](const auto* numbers) {
    for (int64_t first = 0; first < count(); first += run) {
      for (int64_t i = first; i < first + run; ++i) {
        const int64_t number = numbers[i];
        SKIFF_ENFORCE(number >= 0 && number < length_, kOutOfRange, op, ": Index[", i,
                      "] = ", number, " is outside [0, ", length_, ")");
        places[i] = base + (i - first) * stride(last) + number * axis_stride_;
      }
      for (int dim = last - 1; dim >= 0; --dim) {
        int64_t& position = at[static_cast<size_t>(dim)];
        base += stride(dim);
        if (++position < dims_[dim]) break;
        base -= position * stride(dim);
        position = 0;
      }
    }
  });
}

}  // namespace skiff
