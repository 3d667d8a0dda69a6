#include "operators/optimizer/kernels/norm_update.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/kernels/list_walk.h"
#include "operators/optimizer/kernels/range_gradient.h"

namespace skiff {
namespace {

// The sizes alone determine the chunks, so the number of threads doesn't change the norms.
constexpr int64_t kChunk = 8 * kListBlock;

}  // namespace

template <typename T>
NormUpdate<T>::NormUpdate(PrepareContext& context, UpdateLoops<T> loops,
                          const CoefficientRule& rule)
    : UpdateKernel<T>(context, loops.update, rule), step_(loops.step) {
  const std::vector<int64_t>& counts = this->arguments().counts;
  if (context.Input("Grad").is_selected_rows()) {
    row_values_.emplace(context, this->arguments());
    dense_workspace_ = context.RequestWorkspace(ByteCount(counts[0], kDTypeOf<T>));
  }
  for (const int64_t count : counts) {
    first_chunks_.push_back(first_chunks_.back() + (count + kChunk - 1) / kChunk);
  }
  chunk_workspace_ =
      context.RequestWorkspace(first_chunks_.back() * static_cast<int64_t>(sizeof(SquareSums)));
  ranges_.Reserve(counts.size());
  states_.reserve(counts.size());
}

template <typename T>
void NormUpdate<T>::BindRanges(const KernelContext& run) {
  ranges_.Clear();
  states_.clear();
  for (size_t i = 0; i < this->arguments().parameter_count(); ++i) {
    ranges_.Append(row_values_ ? this->RangeWithoutGradient(run, i) : this->DenseRange(run, i));
    states_.push_back(ranges_[i].states);
  }
}

template <typename T>
void NormUpdate<T>::Update(const KernelContext& run) {
  if (row_values_) ranges_[0].grad = MakeGradientDense(run);
  // The last run has redirected the states to their next values; see below.
  for (size_t i = 0; i < ranges_.size(); ++i) ranges_[i].states = states_[i];
  this->SetCoefficients(&ranges_);
  MeasureNorms(run);
  if (step_ != nullptr) {
    // The first pass has advanced the states, so the second one reads the next values.
    for (size_t i = 0; i < ranges_.size(); ++i) {
      std::ranges::copy(ranges_[i].states_out, ranges_[i].states.begin());
    }
  }
  // Again, since the coefficients of the second pass depend on the norms.
  this->SetCoefficients(&ranges_);
  this->UpdateElements(ranges_);
}

template <typename T>
const T* NormUpdate<T>::MakeGradientDense(const KernelContext& run) const {
  auto* dense = static_cast<T*>(run.workspace(dense_workspace_));
  std::fill_n(dense, this->arguments().counts[0], T{0});
  AddSelectedRows(run.input(this->arguments().grads[0]), row_values_->Get(run), dense);
  return dense;
}

template <typename T>
void NormUpdate<T>::MeasureNorms(const KernelContext& run) {
  auto* sums = static_cast<SquareSums*>(run.workspace(chunk_workspace_));
  const int64_t chunks = first_chunks_.back();
  const int64_t grain = chunks * kListGrain / std::max<int64_t>(ranges_.element_count(), 1) + 1;
  ParallelFor(chunks, grain, [&](int64_t begin, int64_t end) {
    ForEachArray(first_chunks_, begin, end, [&](size_t i, int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) {
        const int64_t element = chunk * kChunk;
        sums[first_chunks_[i] + chunk] =
            SumsOfSquares(ranges_[i], element, std::min(element + kChunk, ranges_[i].count));
      }
    });
  });
  for (size_t i = 0; i < ranges_.size(); ++i) {
    // Added in the order of the chunks, whichever thread computed them.
    SquareSums total;
    for (int64_t chunk = first_chunks_[i]; chunk < first_chunks_[i + 1]; ++chunk) {
      total.of_param += sums[chunk].of_param;
      total.of_step += sums[chunk].of_step;
    }
    this->numbers().SetNorms(i, std::sqrt(total.of_param), std::sqrt(total.of_step));
  }
}

template <typename T>
typename NormUpdate<T>::SquareSums NormUpdate<T>::SumsOfSquares(const UpdateRange<T>& range,
                                                                int64_t begin, int64_t end) const {
  alignas(64) T formed[kListBlock];
  alignas(64) T step[kListBlock];
  SquareSums sums;
  for (int64_t i = begin; i < end; i += kListBlock) {
    const int64_t block_end = std::min(i + kListBlock, end);
    const int64_t count = block_end - i;
    sums.of_param += SumOfSquares(range.param + i, count);
    if (step_ == nullptr) {
      const T* gradient = FormedGradientOf(range, this->halves(), i, block_end, formed);
      sums.of_step += SumOfSquares(gradient, count);
      continue;
    }
    UpdateRange<T> to_step = range.From(i);
    // The first pass writes the step instead of the parameter, into a buffer in the cache.
    to_step.param_out = step;
    step_(to_step, 0, count, GradientOf(range, this->halves(), i, block_end, formed));
    sums.of_step += SumOfSquares(step, count);
  }
  return sums;
}

template class NormUpdate<float>;
template class NormUpdate<double>;

}  // namespace skiff
