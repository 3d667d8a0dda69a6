// The update of one parameter by a gradient of selected rows, each element on its own: a range for
// each row of the gradient, and for the rows in between if the op's SparseRule updates these as
// well.
#pragma once

#include "operators/optimizer/kernels/row_values.h"
#include "operators/optimizer/kernels/sparse_ranges.h"
#include "operators/optimizer/kernels/update_kernel.h"

namespace skiff {

template <typename T>
class SparseUpdate final : public UpdateKernel<T> {
 public:
  SparseUpdate(PrepareContext& context, UpdateLoop<T> update, const CoefficientRule& rule);

  // The gradient has the rows of the run.
  bool AcceptsFewerRows() const override { return true; }

 private:
  void BindRanges(const KernelContext& run) override;
  // Throws Error (kOutOfRange) for a row number that the parameter doesn't have.
  void Update(const KernelContext& run) override;

  SparseRows which_;
  RowValues<T> values_;
  int merge_workspace_;
  int sum_workspace_;     // sums of rows that have several slots
  UpdateRange<T> bound_;  // the parameter, without a gradient and coefficients
  RangeList<T> rows_;     // of the run
};

}  // namespace skiff
