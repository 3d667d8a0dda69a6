// The CPU kernel of all optimizers: what is done for each parameter around an optimizer's formula.
//
// Bind finds the arrays of all parameters. A run joins those that lie one behind the other and have
// the same coefficients, and has the threads update the whole block by block (ListKernel). An
// element's result depends neither on where it lies nor on the number of threads: parameters in one
// flat buffer, in a list or one an op get the same bits.
//
// With multi_precision the same kernel runs on the master weights. Parameters of a two-byte dtype
// are only written, and their gradients read, block by block, while the block is in the first
// cache.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "framework/op/list_kernel.h"
#include "operators/common/half.h"
#include "operators/optimizer/sparse_ranges_shared.h"
#include "operators/optimizer/update_arguments_shared.h"
#include "operators/optimizer/update_numbers_shared.h"
#include "operators/optimizer/update_op_shared.h"
#include "operators/optimizer/update_range_shared.h"
#include "operators/optimizer/update_scalars_shared.h"

namespace skiff {

// An optimizer's formula over elements [begin, end) of a range; `grad[0]` is the gradient of
// element `begin` before the range's form is applied, which the loop does. Made by
// update_loops-inl.h for each instruction set.
template <typename T>
using UpdateLoop = void (*)(const UpdateRange<T>& range, int64_t begin, int64_t end, const T* grad);

template <typename T>
struct UpdateLoops {
  UpdateLoop<T> update;
  // Of a formula that needs the norm of its step: runs over all elements first, moves the states on
  // and writes the step to the range's param_out. The coefficients are set before it, with norms of
  // 0, and once more before `update`, which finds the new states in `states`.
  UpdateLoop<T> step = nullptr;
};

// The loops of an op for one instruction set.
struct UpdateLoopSet {
  UpdateLoops<float> of_float;
  UpdateLoops<double> of_double;
};

// Adds the op and its kernels. `loops` and `rule` are given the op; `loops` is called once per
// kernel, as the instruction set may be another one each time.
void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<CoefficientRule(const OpContext&)> rule);

template <typename T>
class UpdateKernel final : public ListKernel {
 public:
  UpdateKernel(PrepareContext& context, SparseRule sparse_rule, UpdateLoops<T> loops,
               const CoefficientRule& rule);
  void Bind(const KernelContext& run) override;
  bool begins_with_elements() const override { return rule_.needs_norms; }
  bool Begin(const KernelContext& run) override;
  int64_t element_count() const override { return begins_.back(); }
  void RunElements(const KernelContext& run, int64_t begin, int64_t end) const override;
  void End(const KernelContext& run) override;

 private:
  using Pair = UpdateArguments::Pair;
  struct SquareSums {
    double of_param = 0;
    double of_step = 0;
  };

  void PlanSparseGradient(PrepareContext& context, SparseRule rule);
  // The gradient of elements [begin, end) of a range: where it lies, or in `buffer`, if it has two
  // bytes or is 0.
  const T* GradientOf(const UpdateRange<T>& range, int64_t begin, int64_t end, T* buffer) const;
  // As the formula takes it.
  const T* FormedGradientOf(const UpdateRange<T>& range, int64_t begin, int64_t end,
                            T* buffer) const;
  const T* RowValues(const KernelContext& run) const;
  void Keep(const KernelContext& run, const std::vector<Pair>& pairs) const;
  UpdateRange<T> BoundRange(const KernelContext& run, size_t i) const;
  void JoinRanges();
  bool HasNumbersOfBefore(size_t i) const;
  void ReadNumbers();
  void SetCoefficients();
  void MakeGradientDense(const KernelContext& run);
  void CutIntoRows(const KernelContext& run);
  void MeasureNorms(const KernelContext& run);
  SquareSums SumsOfSquares(const UpdateRange<T>& range, int64_t begin, int64_t end) const;

  UpdateLoops<T> loops_;
  CoefficientRule rule_;
  UpdateArguments arguments_;
  HalfArrays halves_;                   // with multi_precision
  std::vector<Pair> all_;               // pairs, scalars included
  std::vector<GradientForm<T>> forms_;  // by parameter, but for `scale`
  // Norms are added up over chunks of elements: the first one of each parameter, and their number.
  std::vector<int64_t> first_chunks_;
  int64_t chunk_count_ = 0;
  int chunk_workspace_ = -1;  // sums of squares: of the parameter, of the step, a chunk each
  // Of a sparse gradient.
  bool is_sparse_ = false;
  SparseRows sparse_rows_ = SparseRows::kAll;
  int value_workspace_ = -1;  // of two-byte values, as floats
  int merge_workspace_ = -1;
  int row_workspace_ = -1;    // sums of repeated rows
  int dense_workspace_ = -1;  // the gradient, for a formula that needs norms
  UpdateScalars scalars_;
  std::vector<UpdateNumbers> numbers_;   // by parameter, of the run
  std::vector<uint8_t> has_like_attrs_;  // by parameter: its attributes say what the last one's do
  // By parameter, where its arguments lie, without coefficients; and whether it goes on where the
  // last one ends, with a gradient in the same form.
  std::vector<UpdateRange<T>> bound_;
  std::vector<uint8_t> continues_;
  // Of the run: what one loop may run over. Each parameter that needs norms is a range.
  std::vector<uint8_t> starts_range_;  // by parameter; 0: it is joined to the last one
  std::vector<UpdateRange<T>> ranges_;
  std::vector<size_t> first_parameters_;    // of each range
  std::vector<UpdateRange<T>> row_ranges_;  // of a sparse gradient, in place of ranges_
  std::vector<int64_t> begins_ = {0};  // the elements before each range, and at the end all of them
};

}  // namespace skiff
