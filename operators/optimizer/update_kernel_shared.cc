#include "operators/optimizer/update_kernel_shared.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/merged_rows.h"
#include "operators/common/reduce.h"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/list_walk_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/update_kernel_shared.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T, class D>
HWY_INLINE void FormVector(const VectorMath<T, D>& math, const GradientForm<T>& form, const T* grad,
                           const T* param, T* formed) {
  const D d;
  const auto g = GradientFormula::Formed(math, form, hn::LoadU(d, grad), hn::LoadU(d, param));
  hn::StoreU(g, d, formed);
}

template <typename T>
void FormGradientOf(const GradientForm<T>& form, const T* grad, const T* param, int64_t count,
                    T* formed) {
  const VectorMath<T> math({});
  const VectorMath<T, hn::CappedTag<T, 1>> math_of_one({});
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) FormVector(math, form, grad + i, param + i, formed + i);
  for (; i < count; ++i) FormVector(math_of_one, form, grad + i, param + i, formed + i);
}

void FormFloats(const GradientForm<float>& form, const float* grad, const float* param,
                int64_t count, float* formed) {
  FormGradientOf(form, grad, param, count, formed);
}

void FormDoubles(const GradientForm<double>& form, const double* grad, const double* param,
                 int64_t count, double* formed) {
  FormGradientOf(form, grad, param, count, formed);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(FormFloats);
HWY_EXPORT(FormDoubles);

constexpr int64_t kChunk = 8 * kListBlock;

void FormGradient(const GradientForm<float>& form, const float* grad, const float* param,
                  int64_t count, float* formed) {
  HWY_DYNAMIC_DISPATCH(FormFloats)(form, grad, param, count, formed);
}

void FormGradient(const GradientForm<double>& form, const double* grad, const double* param,
                  int64_t count, double* formed) {
  HWY_DYNAMIC_DISPATCH(FormDoubles)(form, grad, param, count, formed);
}

// The dtypes are the shape rule's: they aren't looked at again in each of thousands of arguments.
template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return static_cast<const T*>(run.input(index).raw_data());
}

template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return static_cast<T*>(run.output(index).raw_data());
}

// Whether `next` goes on in memory where `range` ends, with the gradient in the same form.
template <typename T>
bool Continues(const UpdateRange<T>& range, const UpdateRange<T>& next) {
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
UpdateKernel<T>::UpdateKernel(PrepareContext& context, SparseRule sparse_rule, UpdateLoops<T> loops,
                              const CoefficientRule& rule)
    : loops_(loops),
      rule_(rule),
      arguments_(context, rule),
      forms_(GradientFormsOf<T>(context)),
      scalars_(arguments_) {
  for (const auto& [input, output] : context.def().in_place) {
    const std::vector<Pair> pairs = PairsOf(context, input, output);
    all_.insert(all_.end(), pairs.begin(), pairs.end());
  }
  const size_t count = arguments_.parameter_count();
  for (size_t i = 0; i < count; ++i) {
    numbers_.push_back(arguments_.NumbersOf(i));
    has_like_attrs_.push_back(i > 0 && numbers_[i] == numbers_[i - 1]);
  }
  for (const int64_t elements : arguments_.counts) {
    first_chunks_.push_back(chunk_count_);
    chunk_count_ += (elements + kChunk - 1) / kChunk;
  }
  if (!arguments_.half_params.empty()) halves_ = HalfArraysOf(arguments_.half);
  PlanSparseGradient(context, sparse_rule);
  if (rule_.needs_norms) {
    chunk_workspace_ =
        context.RequestWorkspace(chunk_count_ * static_cast<int64_t>(sizeof(SquareSums)));
  }
  bound_.resize(count);
  continues_.resize(count);
  starts_range_.resize(count);
  first_parameters_.reserve(count);
  ranges_.reserve(count);
  begins_.reserve(std::max(begins_.capacity(), count + 1));
}

template <typename T>
void UpdateKernel<T>::PlanSparseGradient(PrepareContext& context, SparseRule rule) {
  const TensorMeta& grad = context.Input("Grad");
  is_sparse_ = grad.is_selected_rows();
  if (!is_sparse_) return;
  const auto bytes = [&](int64_t count) { return ByteCount(count, kDTypeOf<T>); };
  if (arguments_.has_half_grads) {
    value_workspace_ = context.RequestWorkspace(bytes(grad.shape.element_count()));
  }
  if (rule_.needs_norms) {
    dense_workspace_ = context.RequestWorkspace(bytes(arguments_.counts[0]));
    return;
  }
  const bool touched = rule == SparseRule::kTouchedRows ||
                       (rule == SparseRule::kLazyMode && context.Attr<bool>("lazy_mode"));
  sparse_rows_ = touched ? SparseRows::kTouched : SparseRows::kAll;
  const int64_t slots = grad.shape[0];
  merge_workspace_ = context.RequestWorkspace(MergedRowsWorkspaceBytes(slots));
  row_workspace_ = context.RequestWorkspace(bytes(grad.shape.element_count()));
  row_ranges_.reserve(static_cast<size_t>(2 * slots + 1));
  begins_.reserve(static_cast<size_t>(2 * slots + 2));
}

template <typename T>
void UpdateKernel<T>::Bind(const KernelContext& run) {
  scalars_.Bind(run);
  for (size_t i = 0; i < bound_.size(); ++i) {
    bound_[i] = BoundRange(run, i);
    // What has norms of its own has coefficients of its own.
    continues_[i] = i > 0 && !rule_.needs_norms && Continues(bound_[i - 1], bound_[i]);
  }
  JoinRanges();
}

template <typename T>
bool UpdateKernel<T>::Begin(const KernelContext& run) {
  if (arguments_.skip >= 0 && run.input(arguments_.skip).Item<bool>()) {
    Keep(run, all_);
    return false;
  }
  ReadNumbers();
  SetCoefficients();
  if (dense_workspace_ >= 0) MakeGradientDense(run);
  if (rule_.needs_norms) {
    MeasureNorms(run);
    SetCoefficients();
  }
  if (merge_workspace_ >= 0) CutIntoRows(run);
  return true;
}

template <typename T>
void UpdateKernel<T>::RunElements(const KernelContext&, int64_t begin, int64_t end) const {
  alignas(64) T buffer[kListBlock];
  const std::vector<UpdateRange<T>>& ranges = merge_workspace_ >= 0 ? row_ranges_ : ranges_;
  ForEachArray(begins_, begin, end, [&](size_t i, int64_t first, int64_t last) {
    const UpdateRange<T>& range = ranges[i];
    loops_.update(range, first, last, GradientOf(range, first, last, buffer));
    if constexpr (std::is_same_v<T, float>) {
      if (range.half_param_out == nullptr) return;
      halves_.from_floats(range.param_out + first, last - first, range.half_param_out + first);
    }
  });
}

template <typename T>
void UpdateKernel<T>::End(const KernelContext& run) {
  for (size_t k = rule_.state_count; k < arguments_.states.size(); ++k) {
    Keep(run, arguments_.states[k]);
  }
  for (size_t i = 0; i < numbers_.size(); ++i) scalars_.Advance(i, numbers_[i]);
}

template <typename T>
void UpdateKernel<T>::Keep(const KernelContext& run, const std::vector<Pair>& pairs) const {
  for (const Pair& pair : pairs) {
    if (pair.out < 0 || run.output(pair.out).raw_data() == run.input(pair.in).raw_data()) continue;
    CopyTensor(run.input(pair.in), &run.output(pair.out));
  }
}

template <typename T>
UpdateRange<T> UpdateKernel<T>::BoundRange(const KernelContext& run, size_t i) const {
  UpdateRange<T> range;
  range.param = InputData<T>(run, arguments_.params[i].in);
  if (!is_sparse_ && arguments_.has_half_grads) {
    range.half_grad = InputData<uint16_t>(run, arguments_.grads[i]);
  } else if (!is_sparse_) {
    range.grad = InputData<T>(run, arguments_.grads[i]);
  }
  range.param_out = OutputData<T>(run, arguments_.params[i].out);
  if (!arguments_.half_params.empty()) {
    range.half_param_out = OutputData<uint16_t>(run, arguments_.half_params[i].out);
  }
  for (size_t k = 0; k < arguments_.states.size(); ++k) {
    range.states[k] = InputData<T>(run, arguments_.states[k][i].in);
    range.states_out[k] = OutputData<T>(run, arguments_.states[k][i].out);
  }
  range.count = arguments_.counts[i];
  range.gradient = forms_[i];
  return range;
}

// One range for what one loop may run over, as starts_range_ says.
template <typename T>
void UpdateKernel<T>::JoinRanges() {
  ranges_.clear();
  first_parameters_.clear();
  begins_.assign(1, 0);
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (starts_range_[i] == 0 && i > 0) {
      ranges_.back().count += bound_[i].count;
      begins_.back() += bound_[i].count;
      continue;
    }
    ranges_.push_back(bound_[i]);
    first_parameters_.push_back(i);
    begins_.push_back(begins_.back() + bound_[i].count);
  }
}

// As the parameter before.
template <typename T>
bool UpdateKernel<T>::HasNumbersOfBefore(size_t i) const {
  const UpdateNumbers& before = numbers_[i - 1];
  const UpdateNumbers& own = numbers_[i];
  return has_like_attrs_[i] != 0 && own.learning_rate == before.learning_rate &&
         std::ranges::equal(own.scalars, before.scalars) && own.param_norm == before.param_norm &&
         own.step_norm == before.step_norm;
}

// The numbers of a run, which mostly leave the ranges as they were.
template <typename T>
void UpdateKernel<T>::ReadNumbers() {
  bool is_cut_anew = false;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    scalars_.Read(i, &numbers_[i]);
    numbers_[i].param_norm = numbers_[i].step_norm = 0;
    const uint8_t starts = continues_[i] == 0 || !HasNumbersOfBefore(i) ? 1 : 0;
    if (starts != starts_range_[i]) is_cut_anew = true;
    starts_range_[i] = starts;
  }
  if (is_cut_anew) JoinRanges();
}

template <typename T>
void UpdateKernel<T>::SetCoefficients() {
  const T scale = static_cast<T>(scalars_.scale());
  for (size_t k = 0; k < ranges_.size(); ++k) {
    UpdateRange<T>& range = ranges_[k];
    range.gradient.scale = scale;
    const size_t i = first_parameters_[k];
    // The parameters of an optimizer mostly differ in nothing.
    if (k > 0 && HasNumbersOfBefore(i)) {
      range.coefficients = ranges_[k - 1].coefficients;
      continue;
    }
    double coefficients[kMaxUpdateCoefficients] = {};
    rule_.set_coefficients(numbers_[i], coefficients);
    std::ranges::transform(coefficients, range.coefficients.begin(),
                           [](double value) { return static_cast<T>(value); });
  }
}

template <typename T>
void UpdateKernel<T>::MakeGradientDense(const KernelContext& run) {
  auto* dense = static_cast<T*>(run.workspace(dense_workspace_));
  std::fill_n(dense, arguments_.counts[0], T{0});
  AddSelectedRows(run.input(arguments_.grads[0]), RowValues(run), dense);
  ranges_[0].grad = dense;
}

// Of the selected rows.
template <typename T>
const T* UpdateKernel<T>::RowValues(const KernelContext& run) const {
  const Tensor& grad = run.input(arguments_.grads[0]);
  if constexpr (std::is_same_v<T, float>) {
    if (value_workspace_ >= 0) {
      const auto* halves = static_cast<const uint16_t*>(grad.raw_data());
      auto* values = static_cast<float*>(run.workspace(value_workspace_));
      ParallelFor(grad.shape().element_count(), kListGrain, [&](int64_t begin, int64_t end) {
        halves_.to_floats(halves + begin, end - begin, values + begin);
      });
      return values;
    }
  }
  return grad.data<T>();
}

template <typename T>
void UpdateKernel<T>::CutIntoRows(const KernelContext& run) {
  UpdateRange<T> whole = ranges_[0];
  if (sparse_rows_ == SparseRows::kTouched) {
    // Rows that are left alone are in the outputs as well.
    Keep(run, all_);
    whole.param = whole.param_out;
    std::ranges::copy(whole.states_out, whole.states.begin());
  }
  row_ranges_.clear();
  AppendRowRanges(whole, run.input(arguments_.grads[0]), RowValues(run), sparse_rows_,
                  run.workspace(merge_workspace_), static_cast<T*>(run.workspace(row_workspace_)),
                  &row_ranges_);
  begins_.assign(1, 0);
  for (const UpdateRange<T>& range : row_ranges_) begins_.push_back(begins_.back() + range.count);
}

template <typename T>
const T* UpdateKernel<T>::GradientOf(const UpdateRange<T>& range, int64_t begin, int64_t end,
                                     T* buffer) const {
  if (range.grad != nullptr) return range.grad + begin;
  if (range.half_grad == nullptr) {
    std::fill_n(buffer, end - begin, T{0});
  } else if constexpr (std::is_same_v<T, float>) {
    halves_.to_floats(range.half_grad + begin, end - begin, buffer);
  }
  return buffer;
}

template <typename T>
const T* UpdateKernel<T>::FormedGradientOf(const UpdateRange<T>& range, int64_t begin, int64_t end,
                                           T* buffer) const {
  const T* grad = GradientOf(range, begin, end, buffer);
  if (range.gradient.is_plain()) return grad;
  FormGradient(range.gradient, grad, range.param + begin, end - begin, buffer);
  return buffer;
}

// Over chunks of a fixed size, which are then added up in their order: the sums don't depend on the
// number of threads.
template <typename T>
void UpdateKernel<T>::MeasureNorms(const KernelContext& run) {
  auto* sums = static_cast<SquareSums*>(run.workspace(chunk_workspace_));
  const int64_t elements =
      std::accumulate(arguments_.counts.begin(), arguments_.counts.end(), int64_t{0});
  const int64_t grain = chunk_count_ * kListGrain / std::max<int64_t>(elements, 1) + 1;
  for (size_t i = 0; i < bound_.size(); ++i) ranges_[i].states = bound_[i].states;
  ParallelFor(chunk_count_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const auto above = std::ranges::upper_bound(first_chunks_, chunk);
      const auto i = static_cast<size_t>(above - first_chunks_.begin()) - 1;
      const int64_t first = (chunk - first_chunks_[i]) * kChunk;
      sums[chunk] =
          SumsOfSquares(ranges_[i], first, std::min(first + kChunk, arguments_.counts[i]));
    }
  });
  for (size_t i = 0; i < arguments_.parameter_count(); ++i) {
    const int64_t end = i + 1 < first_chunks_.size() ? first_chunks_[i + 1] : chunk_count_;
    SquareSums total;
    for (int64_t chunk = first_chunks_[i]; chunk < end; ++chunk) {
      total.of_param += sums[chunk].of_param;
      total.of_step += sums[chunk].of_step;
    }
    numbers_[i].param_norm = std::sqrt(total.of_param);
    numbers_[i].step_norm = std::sqrt(total.of_step);
    // The steps have moved the states on.
    if (loops_.step != nullptr) std::ranges::copy(ranges_[i].states_out, ranges_[i].states.begin());
  }
}

template <typename T>
typename UpdateKernel<T>::SquareSums UpdateKernel<T>::SumsOfSquares(const UpdateRange<T>& range,
                                                                    int64_t begin,
                                                                    int64_t end) const {
  alignas(64) T formed[kListBlock];
  alignas(64) T step[kListBlock];
  SquareSums sums;
  for (int64_t i = begin; i < end; i += kListBlock) {
    const int64_t block_end = std::min(i + kListBlock, end);
    sums.of_param += SumOfSquares(range.param + i, block_end - i);
    if (loops_.step == nullptr) {
      sums.of_step += SumOfSquares(FormedGradientOf(range, i, block_end, formed), block_end - i);
      continue;
    }
    UpdateRange<T> to_step = range.From(i);
    to_step.param_out = step;
    loops_.step(to_step, 0, block_end - i, GradientOf(range, i, block_end, formed));
    sums.of_step += SumOfSquares(step, block_end - i);
  }
  return sums;
}

template class UpdateKernel<float>;
template class UpdateKernel<double>;

void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<CoefficientRule(const OpContext&)> rule) {
  registry.Add(MakeUpdateOpDef(op));
  const auto prepare =
      [sparse_rule = op.sparse_rule, loops = std::move(loops),
       rule = std::move(rule)]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    const UpdateLoopSet set = loops(context);
    const CoefficientRule rule_of_op = rule(context);
    if constexpr (std::is_same_v<T, double>) {
      return std::make_unique<UpdateKernel<double>>(context, sparse_rule, set.of_double,
                                                    rule_of_op);
    } else {
      return std::make_unique<UpdateKernel<float>>(context, sparse_rule, set.of_float, rule_of_op);
    }
  };
  registry.AddCpuKernels<float, double, Float16, BFloat16>(op.type, prepare);
  registry.AddSelectedRowsKernels<float, double, Float16, BFloat16>(op.type, prepare);
}

}  // namespace skiff
#endif
