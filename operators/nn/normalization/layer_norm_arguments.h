// The arguments that layer_norm has in common with other ops that normalize rows.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "operators/nn/normalization/layer_norm_rows.h"

namespace skiff {

// A tensor as a matrix; -1 is unknown.
struct NormRows {
  // The dims before `axis` make the rows.
  NormRows(const Shape& shape, int64_t axis);
  // Those of X that the attribute begin_norm_axis says. Throws Error if there is no such axis.
  static NormRows Of(const OpContext& context);
  int64_t count() const { return batch.element_count(); }

  Shape batch;
  int64_t size = 1;  // of a row
};

// Returns the attribute `begin_norm_axis`.
AttrDef BeginNormAxisAttr();

// Returns the definitions of the outputs Mean and Variance. `dims` says which dims they have.
std::vector<SlotDef> RowStatisticSlots(const char* dims);
// Sets the shapes of these outputs.
void InferRowStatistics(OpContext& context, const NormRows& rows, DType dtype);
// Throws Error unless the inputs Mean and Variance have these shapes.
void CheckRowStatistics(const OpContext& context, const NormRows& rows, DType dtype);

// Returns a function from a run to LayerNormRows<T>: the arguments of an op that normalizes rows,
// besides X and Y. The op may lack scale, bias, Mean and Variance.
template <typename T>
auto LayerNormArguments(const OpContext& context, int64_t size, const char* scale_slot,
                        const char* bias_slot) {
  return [size, epsilon = context.Attr<float>("epsilon"), scale = In<T>(context, scale_slot),
          bias = In<T>(context, bias_slot), mean = Out<T>(context, "Mean"),
          variance = Out<T>(context, "Variance")](const KernelContext& run) {
    return LayerNormRows<T>{.size = size,
                            .epsilon = epsilon,
                            .scale = scale(run),
                            .bias = bias(run),
                            .means = mean(run),
                            .variances = variance(run)};
  };
}

// Returns a function from a run to LayerNormGradRows<T>: the arguments of the gradient op, besides
// the gradients. The op may lack scale.
template <typename T>
auto LayerNormGradArguments(const OpContext& context, int64_t size, const char* scale_slot) {
  return [size, epsilon = context.Attr<float>("epsilon"), scale = In<T>(context, scale_slot),
          mean = In<T>(context, "Mean"),
          variance = In<T>(context, "Variance")](const KernelContext& run) {
    return LayerNormGradRows<T>{.size = size,
                                .epsilon = epsilon,
                                .scale = scale(run),
                                .means = mean(run),
                                .variances = variance(run)};
  };
}

}  // namespace skiff
