#include "operators/tensor/kernels/index_rows.h"

namespace skiff {

void CheckIndexDType(const OpContext& context, std::string_view slot) {
  const DType dtype = context.Input(slot).dtype;
  SKIFF_ENFORCE(dtype == DType::kInt32 || dtype == DType::kInt64, kInvalidArgument,
                context.op().type, ": ", slot, " is ", dtype, ", expected int32 or int64");
}

int64_t CountOfIndexVector(const OpContext& context, std::string_view slot) {
  CheckIndexDType(context, slot);
  const Shape& shape = context.Input(slot).shape;
  if (shape.rank() == 0) return 1;
  const bool is_column = shape.rank() == 2 && (shape[1] == 1 || shape[1] < 0);
  SKIFF_ENFORCE(shape.rank() == 1 || is_column, kInvalidArgument, context.op().type, ": ", slot,
                " has shape ", shape, ", expected [], [m] or [m, 1]");
  return shape[0];
}

int RequestRoomForIndices(PrepareContext& context, std::string_view slot) {
  return context.RequestWorkspace(context.Input(slot).shape.element_count() * 8);
}

const int64_t* ReadIndices(const Tensor& indices, int64_t extent, std::string_view op,
                           std::string_view slot, void* checked) {
  const int64_t count = indices.element_count();
  auto* copy = static_cast<int64_t*>(checked);
  VisitIndices(indices, [&](const auto* from) { std::copy_n(from, count, copy); });
  CheckIndices(copy, count, extent, op, slot);
  return copy;
}

Shape ShapeOfTupleRows(const Shape& x, const Shape& index, std::string_view op) {
  SKIFF_ENFORCE(index.rank() >= 1, kInvalidArgument, op,
                ": Index is a scalar, expected shape [..., k] with k indices per tuple");
  const int64_t width = index[index.rank() - 1];
  SKIFF_ENFORCE(width >= 0 && width <= x.rank(), kInvalidArgument, op, ": Index has shape ", index,
                ", whose last dim must be known and no more than the rank of X of shape ", x);
  Shape rows(index.dims().first(static_cast<size_t>(index.rank() - 1)));
  for (int axis = static_cast<int>(width); axis < x.rank(); ++axis) rows.Append(x[axis]);
  return rows;
}

RowsByTuple::RowsByTuple(const Shape& x, const Shape& index, std::string_view op)
    : rows_shape_(ShapeOfTupleRows(x, index, op)) {
  const int width = static_cast<int>(index[index.rank() - 1]);
  dims_ = Shape(x.dims().first(static_cast<size_t>(width)));
  axis_ = {1, dims_.element_count(), x.element_count(width, x.rank())};
  count_ = index.element_count(0, index.rank() - 1);
}

// A tuple indexes the first dims of a row-major tensor, so its row is the tuple read as a number
// with the dims as radices.
void RowsByTuple::Resolve(const Tensor& index, std::string_view op, int64_t* rows) const {
  const int width = dims_.rank();
  VisitIndices(index, [&](const auto* tuples) {
    for (int64_t i = 0; i < count_; ++i) {
      int64_t row = 0;
      for (int axis = 0; axis < width; ++axis) {
        const int64_t at = tuples[i * width + axis];
        SKIFF_ENFORCE(at >= 0 && at < dims_[axis], kOutOfRange, op, ": index ", axis, " of tuple ",
                      i, " in Index is ", at, ", outside [0, ", dims_[axis], ")");
        row = row * dims_[axis] + at;
      }
      rows[i] = row;
    }
  });
}

}  // namespace skiff
