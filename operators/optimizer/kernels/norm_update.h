// The update of parameters by a formula whose coefficients depend on L2 norms (lamb,
// lars_momentum): the norms of each parameter, and of its gradient or of the formula's step.
//
// A run has two passes over the elements: the first measures the norms, the second updates. A norm
// is a sum over chunks of a fixed size, added up in order, so the number of threads doesn't matter.
// A gradient of selected rows is made dense first: the norms are those of the whole parameter. The
// part that an op updates has whole parameters only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "operators/optimizer/kernels/row_values.h"
#include "operators/optimizer/kernels/update_kernel.h"

namespace skiff {

template <typename T>
class NormUpdate final : public UpdateKernel<T> {
 public:
  NormUpdate(PrepareContext& context, UpdateLoops<T> loops, const CoefficientRule& rule);

  // A sparse gradient has the rows of the run; the rows of parameters are fixed.
  bool AcceptsFewerRows() const override { return row_values_.has_value(); }

 private:
  struct SquareSums {
    double of_param = 0;
    double of_step = 0;
  };

  void BindRanges(const KernelContext& run) override;
  // Throws Error (kOutOfRange) for a row number of a sparse gradient that the parameter doesn't
  // have.
  void Update(const KernelContext& run) override;
  // Returns the sum of the selected rows as a dense array.
  const T* MakeGradientDense(const KernelContext& run) const;
  void MeasureNorms(const KernelContext& run);
  SquareSums SumsOfSquares(const UpdateRange<T>& range, int64_t begin, int64_t end) const;

  UpdateLoop<T> step_;  // nullptr: the formula needs the norm of the gradient
  // The two members for a gradient of selected rows.
  std::optional<RowValues<T>> row_values_;
  int dense_workspace_ = -1;
  RangeList<T> ranges_;                                         // a range for each parameter
  std::vector<std::array<const T*, kMaxUpdateStates>> states_;  // by parameter, before the step
  std::vector<int64_t> first_chunks_ = {0};  // of each parameter; last: the number of all chunks
  int chunk_workspace_;                      // SquareSums of each chunk
};

}  // namespace skiff
