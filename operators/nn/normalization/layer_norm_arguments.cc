#include "operators/nn/normalization/layer_norm_arguments.h"

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/input_checks.h"

namespace skiff {

NormRows::NormRows(const Shape& shape, int64_t axis) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < axis) {
      batch.Append(shape[i]);
    } else {
      size = size < 0 || shape[i] < 0 ? -1 : MultiplyCounts(size, shape[i]);
    }
  }
}

NormRows NormRows::Of(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  SKIFF_ENFORCE(axis >= 1 && axis < x.rank(), kInvalidArgument, context.op().type,
                ": begin_norm_axis = ", axis, " is outside [1, ", x.rank() - 1, "] for X of shape ",
                x);
  return {x, axis};
}

AttrDef BeginNormAxisAttr() {
  return {.name = "begin_norm_axis",
          .type = AttrType::kInt,
          .default_value = int32_t{1},
          .doc = "The first of the dims that make a row, at least 1."};
}

std::vector<SlotDef> RowStatisticSlots(const char* dims) {
  return {{.name = "Mean",
           .doc = StrCat("Of the rows; ", dims, "."),
           .dispensable = true,
           .intermediate = true,
           .keeps_float32 = true},
          {.name = "Variance",
           .doc = "Of the rows, biased.",
           .dispensable = true,
           .intermediate = true,
           .keeps_float32 = true}};
}

void InferRowStatistics(OpContext& context, const NormRows& rows, DType dtype) {
  for (const char* slot : {"Mean", "Variance"}) context.SetOutput(slot, rows.batch, dtype);
}

void CheckRowStatistics(const OpContext& context, const NormRows& rows, DType dtype) {
  for (const char* slot : {"Mean", "Variance"}) CheckInputLike(context, slot, rows.batch, dtype);
}

}  // namespace skiff
