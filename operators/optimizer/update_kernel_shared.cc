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

// Elements that stay in the first cache from one loop to the next.
constexpr int64_t kBlock = 2048;
constexpr int64_t kGrain = 4 * kBlock;
constexpr int64_t kChunk = 8 * kBlock;

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

// Whether `next` goes on in memory where `range` ends, with the same formula.
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
  return range.gradient == next.gradient && range.coefficients == next.coefficients;
}

}  // namespace

template <typename T>
UpdateKernel<T>::UpdateKernel(PrepareContext& context, SparseRule sparse_rule, UpdateLoops<T> loops,
                              const CoefficientRule& rule)
    : loops_(loops), rule_(rule), arguments_(context, rule), forms_(GradientFormsOf<T>(context)) {
  for (const auto& [input, output] : context.def().in_place) {
    const std::vector<Pair> pairs = PairsOf(context, input, output);
    all_.insert(all_.end(), pairs.begin(), pairs.end());
  }
  for (size_t i = 0; i < arguments_.parameter_count(); ++i) {
    numbers_.push_back(arguments_.NumbersOf(i));
  }
  for (const int64_t count : arguments_.counts) {
    first_chunks_.push_back(chunk_count_);
    chunk_count_ += (count + kChunk - 1) / kChunk;
  }
  if (!arguments_.half_params.empty()) halves_ = HalfArraysOf(arguments_.half);
  PlanSparseGradient(context, sparse_rule);
  if (rule_.needs_norms) {
    chunk_workspace_ =
        context.RequestWorkspace(chunk_count_ * static_cast<int64_t>(sizeof(SquareSums)));
  }
  ranges_.reserve(arguments_.parameter_count());
  begins_.reserve(arguments_.parameter_count() + 1);
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
  for (auto* ranges : {&ranges_, &row_ranges_}) {
    ranges->reserve(static_cast<size_t>(2 * slots + 1));
  }
  begins_.reserve(static_cast<size_t>(2 * slots + 2));
}

template <typename T>
void UpdateKernel<T>::Run(const KernelContext& run) {
  if (arguments_.skip >= 0 && run.input(arguments_.skip).Item<bool>()) {
    Keep(run, all_);
    return;
  }
  Collect(run);
  if (dense_workspace_ >= 0) MakeGradientDense(run);
  if (rule_.needs_norms) {
    MeasureNorms(run);
    SetCoefficients();
  }
  if (merge_workspace_ >= 0) CutIntoRows(run);
  JoinRanges();
  UpdateAll();
  for (size_t k = rule_.state_count; k < arguments_.states.size(); ++k) {
    Keep(run, arguments_.states[k]);
  }
  for (size_t i = 0; i < numbers_.size(); ++i) arguments_.AdvanceScalars(run, i, numbers_[i]);
}

template <typename T>
void UpdateKernel<T>::Keep(const KernelContext& run, const std::vector<Pair>& pairs) const {
  for (const Pair& pair : pairs) {
    if (pair.out < 0 || run.output(pair.out).raw_data() == run.input(pair.in).raw_data()) continue;
    CopyTensor(run.input(pair.in), &run.output(pair.out));
  }
}

template <typename T>
void UpdateKernel<T>::Collect(const KernelContext& run) {
  const int scale_input = arguments_.scale;
  const T scale = scale_input < 0 ? T{1} : static_cast<T>(ScalarOf(run.input(scale_input)));
  ranges_.assign(arguments_.parameter_count(), {});
  for (size_t i = 0; i < ranges_.size(); ++i) {
    UpdateRange<T>& range = ranges_[i];
    range.param = InputData<T>(run, arguments_.params[i].in);
    if (!is_sparse_ && arguments_.has_half_grads) {
      range.half_grad = static_cast<const uint16_t*>(run.input(arguments_.grads[i]).raw_data());
    } else if (!is_sparse_) {
      range.grad = InputData<T>(run, arguments_.grads[i]);
    }
    range.param_out = OutputData<T>(run, arguments_.params[i].out);
    if (!arguments_.half_params.empty()) {
      Tensor& rounded = run.output(arguments_.half_params[i].out);
      range.half_param_out = static_cast<uint16_t*>(rounded.raw_data());
    }
    for (size_t k = 0; k < arguments_.states.size(); ++k) {
      range.states[k] = InputData<T>(run, arguments_.states[k][i].in);
      range.states_out[k] = OutputData<T>(run, arguments_.states[k][i].out);
    }
    range.count = arguments_.counts[i];
    range.gradient = forms_[i];
    range.gradient.scale = scale;
    arguments_.ReadNumbers(run, i, &numbers_[i]);
  }
  SetCoefficients();
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
      ParallelFor(grad.shape().element_count(), kGrain, [&](int64_t begin, int64_t end) {
        halves_.to_floats(halves + begin, end - begin, values + begin);
      });
      return values;
    }
  }
  return grad.data<T>();
}

template <typename T>
void UpdateKernel<T>::CutIntoRows(const KernelContext& run) {
  if (sparse_rows_ == SparseRows::kTouched) {
    // Rows that are left alone are in the outputs as well.
    Keep(run, all_);
    ranges_[0].param = ranges_[0].param_out;
    std::ranges::copy(ranges_[0].states_out, ranges_[0].states.begin());
  }
  row_ranges_.clear();
  AppendRowRanges(ranges_[0], run.input(arguments_.grads[0]), RowValues(run), sparse_rows_,
                  run.workspace(merge_workspace_), static_cast<T*>(run.workspace(row_workspace_)),
                  &row_ranges_);
  ranges_.swap(row_ranges_);
}

template <typename T>
void UpdateKernel<T>::SetCoefficients() {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    // The parameters of an optimizer mostly differ in nothing.
    if (i > 0 && numbers_[i] == numbers_[i - 1]) {
      ranges_[i].coefficients = ranges_[i - 1].coefficients;
      continue;
    }
    double coefficients[kMaxUpdateCoefficients] = {};
    rule_.set_coefficients(numbers_[i], coefficients);
    std::ranges::transform(coefficients, ranges_[i].coefficients.begin(),
                           [](double value) { return static_cast<T>(value); });
  }
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
  const int64_t grain = chunk_count_ * kGrain / std::max<int64_t>(elements, 1) + 1;
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
    if (loops_.step != nullptr) std::ranges::copy(ranges_[i].states_out, ranges_[i].states.begin());
  }
}

template <typename T>
typename UpdateKernel<T>::SquareSums UpdateKernel<T>::SumsOfSquares(const UpdateRange<T>& range,
                                                                    int64_t begin,
                                                                    int64_t end) const {
  alignas(64) T formed[kBlock];
  alignas(64) T step[kBlock];
  SquareSums sums;
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t block_end = std::min(i + kBlock, end);
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

// One range for what one loop may run over. Ranges without elements are left out.
template <typename T>
void UpdateKernel<T>::JoinRanges() {
  size_t kept = 0;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].count == 0) continue;
    if (kept > 0 && Continues(ranges_[kept - 1], ranges_[i])) {
      ranges_[kept - 1].count += ranges_[i].count;
    } else {
      if (kept != i) ranges_[kept] = ranges_[i];
      ++kept;
    }
  }
  ranges_.resize(kept);
  begins_.assign(1, 0);
  for (const UpdateRange<T>& range : ranges_) begins_.push_back(begins_.back() + range.count);
}

template <typename T>
void UpdateKernel<T>::UpdateAll() const {
  ForEachBlock(begins_, kGrain, kBlock, [&](size_t i, int64_t first, int64_t last) {
    alignas(64) T buffer[kBlock];
    const UpdateRange<T>& range = ranges_[i];
    loops_.update(range, first, last, GradientOf(range, first, last, buffer));
    if constexpr (std::is_same_v<T, float>) {
      if (range.half_param_out == nullptr) return;
      halves_.from_floats(range.param_out + first, last - first, range.half_param_out + first);
    }
  });
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
