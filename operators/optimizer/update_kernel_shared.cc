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
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Each step is rounded for itself (the family is compiled without contraction), as the ops are that
// a program would have in place of the form.
template <typename T, class D>
HWY_INLINE void FormVector(D d, const GradientForm<T>& form, const T* grad, const T* param,
                           T* formed) {
  const auto p = hn::LoadU(d, param);
  auto g = hn::Mul(hn::LoadU(d, grad), hn::Set(d, form.rescale));
  g = hn::Mul(g, hn::Set(d, form.scale));
  if (form.l2_decay != 0) g = hn::Add(g, hn::Mul(p, hn::Set(d, form.l2_decay)));
  if (form.l1_decay != 0) {
    const auto decay = hn::CopySign(hn::Set(d, form.l1_decay), p);
    g = hn::Add(g, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), decay));
  }
  hn::StoreU(g, d, formed);
}

template <typename T>
void FormGradientOf(const GradientForm<T>& form, const T* grad, const T* param, int64_t count,
                    T* formed) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) FormVector(d, form, grad + i, param + i, formed + i);
  for (; i < count; ++i) FormVector(one, form, grad + i, param + i, formed + i);
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

// The gradient of elements [begin, end) of a range as the formula takes it: where it lies, or in
// `formed`.
template <typename T>
const T* GradientOf(const UpdateRange<T>& range, int64_t begin, int64_t end, T* formed) {
  const T* grad = range.grad == nullptr ? formed : range.grad + begin;
  if (range.grad == nullptr) std::fill_n(formed, end - begin, T{0});
  if (range.gradient.is_plain()) return grad;
  FormGradient(range.gradient, grad, range.param + begin, end - begin, formed);
  return formed;
}

template <typename T>
GradientForm<T> FormOf(const OpContext& context, size_t i) {
  GradientForm<T> form;
  form.rescale = static_cast<T>(context.Attr<float>("rescale_grad"));
  std::string method;
  float coefficient = 0;
  if (context.def().FindAttr("regularization_method")->type == AttrType::kStrings) {
    method = EntryFor(context.Attr<std::vector<std::string>>("regularization_method"), i);
    coefficient = EntryFor(context.Attr<std::vector<float>>("regularization_coeff"), i);
  } else {
    method = context.Attr<std::string>("regularization_method");
    coefficient = context.Attr<float>("regularization_coeff");
  }
  if (method == "l1_decay") form.l1_decay = static_cast<T>(coefficient);
  if (method == "l2_decay") form.l2_decay = static_cast<T>(coefficient);
  return form;
}

template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return run.input(index).data<T>();
}

template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return run.output(index).data<T>();
}

// Whether `next` goes on in memory where `range` ends, with the same formula.
template <typename T>
bool Continues(const UpdateRange<T>& range, const UpdateRange<T>& next) {
  const auto follows = [&](const T* first, const T* second) {
    if (first == nullptr || second == nullptr) return first == second;
    return first + range.count == second;
  };
  if (!follows(range.param, next.param) || !follows(range.grad, next.grad) ||
      !follows(range.param_out, next.param_out)) {
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

std::vector<int> InputIndices(const OpContext& context, const std::string& slot) {
  std::vector<int> indices;
  for (size_t i = 0; i < context.InputCount(slot); ++i) {
    indices.push_back(context.InputIndex(slot, i));
  }
  return indices;
}

template <typename T>
UpdateRange<T> UpdateRange<T>::From(int64_t begin) const {
  const auto advance = [begin](auto*& array) {
    if (array != nullptr) array += begin;
  };
  UpdateRange rest = *this;
  advance(rest.param);
  advance(rest.grad);
  advance(rest.param_out);
  std::ranges::for_each(rest.states, advance);
  std::ranges::for_each(rest.states_out, advance);
  rest.count -= begin;
  return rest;
}

template <typename T>
UpdateKernel<T>::UpdateKernel(PrepareContext& context, const UpdateOp& op, UpdateLoops<T> loops,
                              std::unique_ptr<UpdateFormula> formula)
    : loops_(loops),
      formula_(std::move(formula)),
      grads_(InputIndices(context, "Grad")),
      rates_(InputIndices(context, "LearningRate")),
      params_(PairsOf(context, "Param", "ParamOut")),
      skip_(context.InputIndex("SkipUpdate")),
      scale_(context.InputIndex("GradScale")),
      norms_(params_.size()) {
  for (const UpdateOp::State& state : op.states) {
    states_.push_back(PairsOf(context, state.input, state.output));
  }
  for (const auto& [input, output] : context.def().in_place) {
    const std::vector<Pair> pairs = PairsOf(context, input, output);
    kept_.insert(kept_.end(), pairs.begin(), pairs.end());
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    forms_.push_back(FormOf<T>(context, i));
    counts_.push_back(context.Input("Param", i).shape.element_count());
    first_chunks_.push_back(chunk_count_);
    chunk_count_ += (counts_.back() + kChunk - 1) / kChunk;
  }
  PlanSparseGradient(context, op.sparse_rule);
  if (formula_->needs_norms()) {
    chunk_workspace_ = context.RequestWorkspace(chunk_count_ * static_cast<int64_t>(sizeof(Norms)));
  }
  ranges_.reserve(params_.size());
  begins_.reserve(params_.size() + 1);
}

template <typename T>
std::vector<typename UpdateKernel<T>::Pair> UpdateKernel<T>::PairsOf(const OpContext& context,
                                                                     const std::string& input,
                                                                     const std::string& output) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < context.InputCount(input); ++i) {
    pairs.push_back({.in = context.InputIndex(input, i), .out = context.OutputIndex(output, i)});
  }
  return pairs;
}

template <typename T>
void UpdateKernel<T>::PlanSparseGradient(PrepareContext& context, SparseRule rule) {
  const TensorMeta& grad = context.Input("Grad");
  is_sparse_ = grad.is_selected_rows();
  if (!is_sparse_) return;
  const auto bytes = [&](int64_t count) { return ByteCount(count, grad.dtype); };
  if (formula_->needs_norms()) {
    dense_workspace_ = context.RequestWorkspace(bytes(counts_[0]));
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
  if (skip_ >= 0 && run.input(skip_).Item<bool>()) {
    Keep(run);
    return;
  }
  CollectRanges(run);
  if (dense_workspace_ >= 0) MakeGradientDense(run);
  if (formula_->needs_norms()) MeasureNorms(run);
  SetCoefficients(run);
  if (merge_workspace_ >= 0) CutIntoRows(run);
  JoinRanges();
  UpdateAll();
  for (size_t i = 0; i < params_.size(); ++i) formula_->Finish(run, i);
}

template <typename T>
void UpdateKernel<T>::Keep(const KernelContext& run) const {
  for (const Pair& pair : kept_) {
    if (pair.out < 0 || run.output(pair.out).raw_data() == run.input(pair.in).raw_data()) continue;
    CopyTensor(run.input(pair.in), &run.output(pair.out));
  }
}

template <typename T>
void UpdateKernel<T>::CollectRanges(const KernelContext& run) {
  const T scale = scale_ < 0 ? T{1} : static_cast<T>(ScalarOf(run.input(scale_)));
  ranges_.clear();
  for (size_t i = 0; i < params_.size(); ++i) {
    UpdateRange<T>& range = ranges_.emplace_back();
    range.param = InputData<T>(run, params_[i].in);
    if (!is_sparse_) range.grad = InputData<T>(run, grads_[i]);
    range.param_out = OutputData<T>(run, params_[i].out);
    for (size_t k = 0; k < states_.size(); ++k) {
      range.states[k] = InputData<T>(run, states_[k][i].in);
      range.states_out[k] = OutputData<T>(run, states_[k][i].out);
    }
    range.count = counts_[i];
    range.gradient = forms_[i];
    range.gradient.scale = scale;
  }
}

template <typename T>
void UpdateKernel<T>::MakeGradientDense(const KernelContext& run) {
  auto* dense = static_cast<T*>(run.workspace(dense_workspace_));
  std::fill_n(dense, counts_[0], T{0});
  AddSelectedRows(run.input(grads_[0]), dense);
  ranges_[0].grad = dense;
}

template <typename T>
void UpdateKernel<T>::CutIntoRows(const KernelContext& run) {
  if (sparse_rows_ == SparseRows::kTouched) {
    // Rows that are left alone are in the outputs as well.
    Keep(run);
    ranges_[0].param = ranges_[0].param_out;
    std::ranges::copy(ranges_[0].states_out, ranges_[0].states.begin());
  }
  row_ranges_.clear();
  AppendRowRanges(ranges_[0], run.input(grads_[0]), sparse_rows_, run.workspace(merge_workspace_),
                  static_cast<T*>(run.workspace(row_workspace_)), &row_ranges_);
  ranges_.swap(row_ranges_);
}

template <typename T>
void UpdateKernel<T>::SetCoefficients(const KernelContext& run) {
  double shared_rate = ScalarOf(run.input(rates_[0]));
  for (size_t i = 0; i < params_.size(); ++i) {
    double coefficients[kMaxUpdateCoefficients] = {};
    formula_->SetCoefficients(
        {.run = run,
         .index = i,
         .learning_rate = rates_.size() == 1 ? shared_rate : ScalarOf(run.input(rates_[i])),
         .param_norm = norms_[i].param,
         .step_norm = norms_[i].step},
        coefficients);
    std::ranges::transform(coefficients, ranges_[i].coefficients.begin(),
                           [](double value) { return static_cast<T>(value); });
  }
}

// Over chunks of a fixed size, which are then added up in their order: the sums don't depend on the
// number of threads.
template <typename T>
void UpdateKernel<T>::MeasureNorms(const KernelContext& run) {
  auto* sums = static_cast<Norms*>(run.workspace(chunk_workspace_));
  std::ranges::fill(norms_, Norms{});
  if (loops_.step != nullptr) SetCoefficients(run);
  const int64_t elements = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  const int64_t grain = chunk_count_ * kGrain / std::max<int64_t>(elements, 1) + 1;
  ParallelFor(chunk_count_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const auto above = std::ranges::upper_bound(first_chunks_, chunk);
      const auto i = static_cast<size_t>(above - first_chunks_.begin()) - 1;
      const int64_t first = (chunk - first_chunks_[i]) * kChunk;
      sums[chunk] = SumsOfSquares(ranges_[i], first, std::min(first + kChunk, counts_[i]));
    }
  });
  for (size_t i = 0; i < params_.size(); ++i) {
    const int64_t end = i + 1 < first_chunks_.size() ? first_chunks_[i + 1] : chunk_count_;
    Norms total;
    for (int64_t chunk = first_chunks_[i]; chunk < end; ++chunk) {
      total.param += sums[chunk].param;
      total.step += sums[chunk].step;
    }
    norms_[i] = {.param = std::sqrt(total.param), .step = std::sqrt(total.step)};
    if (loops_.step != nullptr) std::ranges::copy(ranges_[i].states_out, ranges_[i].states.begin());
  }
}

template <typename T>
typename UpdateKernel<T>::Norms UpdateKernel<T>::SumsOfSquares(const UpdateRange<T>& range,
                                                               int64_t begin, int64_t end) const {
  alignas(64) T formed[kBlock];
  alignas(64) T step[kBlock];
  Norms sums;
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t block_end = std::min(i + kBlock, end);
    const T* of_step = GradientOf(range, i, block_end, formed);
    if (loops_.step != nullptr) {
      UpdateRange<T> to_step = range.From(i);
      to_step.param_out = step;
      loops_.step(to_step, 0, block_end - i, of_step);
      of_step = step;
    }
    sums.param += SumOfSquares(range.param + i, block_end - i);
    sums.step += SumOfSquares(of_step, block_end - i);
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
    alignas(64) T formed[kBlock];
    loops_.update(ranges_[i], first, last, GradientOf(ranges_[i], first, last, formed));
  });
}

template class UpdateKernel<float>;
template class UpdateKernel<double>;

void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<std::unique_ptr<UpdateFormula>(const OpContext&)> formula) {
  registry.Add(MakeUpdateOpDef(op));
  const auto prepare = [op, loops = std::move(loops), formula = std::move(formula)]<typename T>(
                           PrepareContext& context) -> std::unique_ptr<Kernel> {
    const UpdateLoopSet set = loops(context);
    if constexpr (std::is_same_v<T, float>) {
      return std::make_unique<UpdateKernel<T>>(context, op, set.of_float, formula(context));
    } else {
      return std::make_unique<UpdateKernel<T>>(context, op, set.of_double, formula(context));
    }
  };
  registry.AddCpuKernels<float, double>(op.type, prepare);
  registry.AddSelectedRowsKernels<float, double>(op.type, prepare);
}

}  // namespace skiff
#endif
