// The arguments that layer_norm has in common with ops that normalize rows among other things.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "operators/nn/kernels/layer_norm_rows.h"
#include "operators/nn/kernels/norm_arguments.h"

namespace skiff {

// A tensor as a matrix; -1 is unknown.
struct NormRows {
  // The dims before `axis` make the rows.
  NormRows(const Shape& shape, int64_t axis);
  int64_t count() const { return batch.element_count(); }

  Shape batch;
  int64_t size = 1;  // of a row
};

// Returns the definitions of the outputs Mean and Variance. `dims` says which dims they have.
std::vector<SlotDef> RowStatisticSlots(const char* dims);
// Sets the shapes of these outputs.
void InferRowStatistics(OpContext& context, const NormRows& rows, DType dtype);
// Throws Error unless the inputs Mean and Variance have these shapes.
void CheckRowStatistics(const OpContext& context, const NormRows& rows, DType dtype);

// What an op gives LayerNormRows besides X and Y.
class LayerNormArguments {
 public:
  LayerNormArguments(const OpContext& context, int64_t size, const char* scale_slot,
                     const char* bias_slot)
      : size_(size),
        epsilon_(context.Attr<float>("epsilon")),
        scale_(context.InputIndex(scale_slot)),
        bias_(context.InputIndex(bias_slot)),
        mean_(context.OutputIndex("Mean")),
        variance_(context.OutputIndex("Variance")) {}

  template <typename T>
  LayerNormRows<T> Of(const KernelContext& run) const {
    return {.size = size_,
            .epsilon = epsilon_,
            .scale = InputData<T>(run, scale_),
            .bias = InputData<T>(run, bias_),
            .means = OutputData<T>(run, mean_),
            .variances = OutputData<T>(run, variance_)};
  }

 private:
  int64_t size_;
  double epsilon_;
  int scale_;
  int bias_;
  int mean_;
  int variance_;
};

// What a gradient op gives LayerNormGradRows besides the gradients.
class LayerNormGradArguments {
 public:
  LayerNormGradArguments(const OpContext& context, int64_t size, const char* scale_slot)
      : size_(size),
        epsilon_(context.Attr<float>("epsilon")),
        scale_(context.InputIndex(scale_slot)),
        mean_(context.InputIndex("Mean")),
        variance_(context.InputIndex("Variance")) {}

  template <typename T>
  LayerNormGradRows<T> Of(const KernelContext& run) const {
    return {.size = size_,
            .epsilon = epsilon_,
            .scale = InputData<T>(run, scale_),
            .means = run.input(mean_).data<T>(),
            .variances = run.input(variance_).data<T>()};
  }

 private:
  int64_t size_;
  double epsilon_;
  int scale_;
  int mean_;
  int variance_;
};

}  // namespace skiff
