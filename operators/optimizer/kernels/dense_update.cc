#include "operators/optimizer/kernels/dense_update.h"

#include <cstddef>

namespace skiff {
namespace {

// Returns whether all arrays of `next` begin where those of `range` end, and the gradients have the
// same form.
template <typename T>
bool Follows(const UpdateRange<T>& range, const UpdateRange<T>& next) {
  const auto follows = [&](const auto* first, const auto* second) {
    if (first == nullptr || second == nullptr) return first == second;
    return first + range.count == second;
  };
  if (!follows(range.param, next.param) || !follows(range.grad, next.grad) ||
      !follows(range.param_out, next.param_out) || !follows(range.half_grad, next.half_grad) ||
      !follows(range.half_param_out, next.half_param_out)) {
    return false;
  }
  for (size_t k = 0; k < kMaxUpdateStates; ++k) {
    if (!follows(range.states[k], next.states[k]) ||
        !follows(range.states_out[k], next.states_out[k])) {
      return false;
    }
  }
  return range.gradient == next.gradient;
}

}  // namespace

template <typename T>
DenseUpdate<T>::DenseUpdate(const OpContext& context, UpdateLoop<T> update,
                            const CoefficientRule& rule)
    : UpdateKernel<T>(context, update, rule) {
  const size_t count = this->arguments().parameter_count();
  parameters_.resize(count);
  follows_previous_.resize(count);
  starts_range_.resize(count);
  ranges_.Reserve(count);
}

template <typename T>
void DenseUpdate<T>::BindRanges(const KernelContext& run) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i] = this->DenseRange(run, i);
    follows_previous_[i] = i > 0 && Follows(parameters_[i - 1], parameters_[i]) ? 1 : 0;
  }
  JoinRanges();
}

template <typename T>
void DenseUpdate<T>::Update(const KernelContext&) {
  JoinByNumbers();
  this->SetCoefficients(&ranges_);
  this->UpdateElements(ranges_);
}

// Joins parameters that follow one another and have the same numbers in this run. The numbers
// rarely change which parameters match, so most runs keep the ranges of the last one.
template <typename T>
void DenseUpdate<T>::JoinByNumbers() {
  bool is_changed = false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool is_joined = follows_previous_[i] != 0 && this->numbers().MatchPrevious(i);
    const uint8_t starts = is_joined ? 0 : 1;
    if (starts != starts_range_[i]) is_changed = true;
    starts_range_[i] = starts;
  }
  if (is_changed) JoinRanges();
}

template <typename T>
void DenseUpdate<T>::JoinRanges() {
  ranges_.Clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (starts_range_[i] == 0 && i > 0) {
      ranges_.ExtendLast(parameters_[i].count);
    } else {
      ranges_.Append(parameters_[i]);
    }
  }
}

template class DenseUpdate<float>;
template class DenseUpdate<double>;

}  // namespace skiff
