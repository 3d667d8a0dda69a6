#include "operators/optimizer/kernels/sparse_update.h"

#include <algorithm>

#include "framework/base/element_count.h"
#include "operators/common/merged_rows.h"

namespace skiff {

template <typename T>
SparseUpdate<T>::SparseUpdate(PrepareContext& context, UpdateLoop<T> update,
                              const CoefficientRule& rule)
    : UpdateKernel<T>(context, update, rule),
      which_(UpdatesOnlyTouchedRows(context, rule.sparse_rule) ? SparseRows::kTouched
                                                               : SparseRows::kAll),
      values_(context, this->arguments()) {
  const Shape& slots = context.Input("Grad").shape;
  merge_workspace_ = context.RequestWorkspace(MergedRowsWorkspaceBytes(slots[0]));
  sum_workspace_ = context.RequestWorkspace(ByteCount(slots.element_count(), kDTypeOf<T>));
  // The most ranges: each touched row, and the gaps before, between and after them.
  rows_.Reserve(static_cast<size_t>(2 * slots[0] + 1));
}

template <typename T>
void SparseUpdate<T>::BindRanges(const KernelContext& run) {
  bound_ = this->RangeWithoutGradient(run, 0);
}

template <typename T>
void SparseUpdate<T>::Update(const KernelContext& run) {
  UpdateRange<T> whole = bound_;
  this->SetCoefficients(&whole);
  if (which_ == SparseRows::kTouched) {
    // The outputs need the other rows, too. Once copied, the touched rows are updated in place.
    this->CopyInputsToOutputs(run);
    whole.param = whole.param_out;
    std::ranges::copy(whole.states_out, whole.states.begin());
  }
  rows_.Clear();
  AppendRowRanges(whole, run.input(this->arguments().grads[0]), values_.Get(run), which_,
                  run.workspace(merge_workspace_), static_cast<T*>(run.workspace(sum_workspace_)),
                  &rows_);
  this->UpdateElements(rows_);
}

template class SparseUpdate<float>;
template class SparseUpdate<double>;

}  // namespace skiff
