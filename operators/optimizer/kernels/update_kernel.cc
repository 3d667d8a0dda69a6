#include "operators/optimizer/kernels/update_kernel.h"

#include <algorithm>
#include <type_traits>

#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/list_walk.h"
#include "operators/optimizer/kernels/range_gradient.h"

namespace skiff {
namespace {

using Pair = UpdateArguments::Pair;

// The shape rule has checked the dtypes. Checking them again for thousands of arguments costs time.
template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return static_cast<const T*>(run.input(index).raw_data());
}

template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return static_cast<T*>(run.output(index).raw_data());
}

std::vector<Pair> InPlacePairs(const OpContext& context) {
  std::vector<Pair> all;
  for (const auto& [input, output] : context.def().in_place) {
    const std::vector<Pair> pairs = PairsOf(context, input, output);
    all.insert(all.end(), pairs.begin(), pairs.end());
  }
  return all;
}

}  // namespace

template <typename T>
UpdateKernel<T>::UpdateKernel(const OpContext& context, UpdateLoop<T> update,
                              const CoefficientRule& rule)
    : update_(update),
      rule_(rule),
      arguments_(context, rule),
      forms_(GradientFormsOf<T>(context)),
      in_place_(InPlacePairs(context)),
      numbers_(arguments_) {
  if (!arguments_.half_params.empty()) halves_ = HalfArraysOf(arguments_.half);
}

template <typename T>
void UpdateKernel<T>::Bind(const KernelContext& run) {
  numbers_.Bind(run);
  BindRanges(run);
}

template <typename T>
void UpdateKernel<T>::Run(const KernelContext& run) {
  if (arguments_.skip >= 0 && run.input(arguments_.skip).Item<bool>()) {
    CopyInputsToOutputs(run);
    return;
  }
  if (arguments_.has_part) CopyOtherElements(run);
  numbers_.Read();
  Update(run);
  // States beyond those of the formula are passed on unchanged.
  for (size_t k = rule_.state_count; k < arguments_.states.size(); ++k) {
    CopyToOutputs(run, arguments_.states[k]);
  }
  numbers_.AdvanceScalars();
}

template <typename T>
UpdateRange<T> UpdateKernel<T>::RangeWithoutGradient(const KernelContext& run, size_t i) const {
  const int64_t in_param = arguments_.BeginInParam(i);
  UpdateRange<T> range;
  range.parameter = i;
  range.param = InputData<T>(run, arguments_.params[i].in) + in_param;
  range.param_out = OutputData<T>(run, arguments_.params[i].out) + in_param;
  if (!arguments_.half_params.empty()) {
    range.half_param_out =
        OutputData<uint16_t>(run, arguments_.half_params[i].out) + arguments_.Begin(i);
  }
  for (size_t k = 0; k < arguments_.states.size(); ++k) {
    const int64_t in_state = arguments_.BeginInState(k, i);
    range.states[k] = InputData<T>(run, arguments_.states[k][i].in) + in_state;
    range.states_out[k] = OutputData<T>(run, arguments_.states[k][i].out) + in_state;
  }
  range.count = arguments_.counts[i];
  range.gradient = forms_[i];
  return range;
}

template <typename T>
UpdateRange<T> UpdateKernel<T>::DenseRange(const KernelContext& run, size_t i) const {
  UpdateRange<T> range = RangeWithoutGradient(run, i);
  if (arguments_.has_half_grads) {
    range.half_grad = InputData<uint16_t>(run, arguments_.grads[i]) + arguments_.Begin(i);
  } else {
    range.grad = InputData<T>(run, arguments_.grads[i]) + arguments_.Begin(i);
  }
  return range;
}

template <typename T>
void UpdateKernel<T>::SetCoefficients(UpdateRange<T>* range) const {
  range->gradient.scale = static_cast<T>(numbers_.gradient_scale());
  // Computed in float64, and rounded to T only once.
  double coefficients[kMaxUpdateCoefficients] = {};
  rule_.set_coefficients(numbers_[range->parameter], coefficients);
  std::ranges::transform(coefficients, range->coefficients.begin(),
                         [](double value) { return static_cast<T>(value); });
}

template <typename T>
void UpdateKernel<T>::SetCoefficients(RangeList<T>* ranges) const {
  for (size_t k = 0; k < ranges->size(); ++k) {
    UpdateRange<T>& range = (*ranges)[k];
    // Most parameters of an optimizer have the same numbers. The rule takes roots and powers.
    if (k > 0 && numbers_.MatchPrevious(range.parameter)) {
      range.gradient.scale = (*ranges)[k - 1].gradient.scale;
      range.coefficients = (*ranges)[k - 1].coefficients;
    } else {
      SetCoefficients(&range);
    }
  }
}

template <typename T>
void UpdateKernel<T>::CopyOtherElements(const KernelContext& run) const {
  CopyToOutputs(run, arguments_.half_params);
  if (!arguments_.has_sharded_params) CopyToOutputs(run, arguments_.params);
  for (size_t k = 0; k < rule_.state_count; ++k) {
    if (!arguments_.sharded_states[k]) CopyToOutputs(run, arguments_.states[k]);
  }
}

template <typename T>
void UpdateKernel<T>::CopyInputsToOutputs(const KernelContext& run) const {
  CopyToOutputs(run, in_place_);
}

template <typename T>
void UpdateKernel<T>::UpdateElements(const RangeList<T>& ranges) const {
  ForEachBlock(ranges.element_count(),
               [&](int64_t begin, int64_t end) { UpdateBlock(ranges, begin, end); });
}

// Updates at most kListBlock elements. A block is small enough that gradients converted in
// `buffer`, and parameters rounded afterwards, are read from the first cache.
template <typename T>
void UpdateKernel<T>::UpdateBlock(const RangeList<T>& ranges, int64_t begin, int64_t end) const {
  alignas(64) T buffer[kListBlock];
  ForEachArray(ranges.begins(), begin, end, [&](size_t k, int64_t first, int64_t last) {
    const UpdateRange<T>& range = ranges[k];
    update_(range, first, last, GradientOf(range, halves_, first, last, buffer));
    if constexpr (std::is_same_v<T, float>) {
      if (range.half_param_out == nullptr) return;
      halves_.from_floats(range.param_out + first, last - first, range.half_param_out + first);
    }
  });
}

template class UpdateKernel<float>;
template class UpdateKernel<double>;

}  // namespace skiff
