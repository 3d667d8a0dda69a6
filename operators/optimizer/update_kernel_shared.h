// The CPU kernel of all optimizers: what is done for each parameter around an optimizer's formula.
//
// A run collects the arrays of all parameters, joins those that lie one behind the other and have
// the same coefficients, cuts the whole into blocks that fit the first cache, and has the threads
// update block by block. An element's result depends neither on where it lies nor on the number of
// threads: parameters in one flat buffer, in a list or one an op get the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/optimizer/sparse_ranges_shared.h"
#include "operators/optimizer/update_op_shared.h"
#include "operators/optimizer/update_range_shared.h"

namespace skiff {

// An optimizer's formula over elements [begin, end) of a range; `grad[0]` is the gradient of
// element `begin`. Made by update_loops-inl.h for each instruction set.
template <typename T>
using UpdateLoop = void (*)(const UpdateRange<T>& range, int64_t begin, int64_t end, const T* grad);

template <typename T>
struct UpdateLoops {
  UpdateLoop<T> update;
  // Of a formula that needs the norm of its step: runs over all elements first, moves the states on
  // and writes the step to the range's param_out. SetCoefficients is called before it, with norms
  // of 0, and once more before `update`, which finds the new states in `states`.
  UpdateLoop<T> step = nullptr;
};

// The loops of an op for one instruction set.
struct UpdateLoopSet {
  UpdateLoops<float> of_float;
  UpdateLoops<double> of_double;
};

// What one optimizer does with numbers rather than arrays.
class UpdateFormula {
 public:
  virtual ~UpdateFormula() = default;

  // Parameter i in a run.
  struct Parameter {
    const KernelContext& run;
    size_t index;
    double learning_rate;
    // If the formula needs norms: the L2 norms of the parameter and of its gradient, or, of a
    // formula with such a loop, of its step.
    double param_norm;
    double step_norm;
  };
  // Fills in what the loop reads.
  virtual void SetCoefficients(const Parameter& parameter, double* coefficients) const = 0;
  // Whether SetCoefficients reads the norms.
  virtual bool needs_norms() const { return false; }
  // Called once the parameters are updated, and not with SkipUpdate: moves the scalars on.
  virtual void Finish(const KernelContext&, size_t) const {}
};

// Indices of the arguments of a list, as KernelContext counts them.
std::vector<int> InputIndices(const OpContext& context, const std::string& slot);

// Adds the op and its kernels. `loops` and `formula` are given the op; `loops` is called once per
// kernel, as the instruction set may be another one each time.
void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<std::unique_ptr<UpdateFormula>(const OpContext&)> formula);

template <typename T>
class UpdateKernel final : public Kernel {
 public:
  // `loops` take the states in the order of `op`.
  UpdateKernel(PrepareContext& context, const UpdateOp& op, UpdateLoops<T> loops,
               std::unique_ptr<UpdateFormula> formula);
  void Run(const KernelContext& run) override;

 private:
  // An input of a list, and the output that is its next value; -1: none.
  struct Pair {
    int in = -1;
    int out = -1;
  };
  struct Norms {
    double param = 0;
    double step = 0;
  };

  static std::vector<Pair> PairsOf(const OpContext& context, const std::string& input,
                                   const std::string& output);
  void PlanSparseGradient(PrepareContext& context, SparseRule rule);
  void Keep(const KernelContext& run) const;
  void MakeGradientDense(const KernelContext& run);
  void CutIntoRows(const KernelContext& run);
  void CollectRanges(const KernelContext& run);
  void MeasureNorms(const KernelContext& run);
  Norms SumsOfSquares(const UpdateRange<T>& range, int64_t begin, int64_t end) const;
  void SetCoefficients(const KernelContext& run);
  void JoinRanges();
  void UpdateAll() const;

  UpdateLoops<T> loops_;
  std::unique_ptr<UpdateFormula> formula_;
  std::vector<int> grads_;
  std::vector<int> rates_;
  std::vector<Pair> params_;
  std::vector<std::vector<Pair>> states_;  // by state, by parameter
  std::vector<Pair> kept_;                 // all pairs, scalars included
  int skip_ = -1;
  int scale_ = -1;
  std::vector<GradientForm<T>> forms_;  // by parameter, but for `scale`
  std::vector<int64_t> counts_;         // elements, by parameter
  // Norms are added up over chunks of elements: the first one of each parameter, and their number.
  std::vector<int64_t> first_chunks_;
  int64_t chunk_count_ = 0;
  int chunk_workspace_ = -1;  // sums of squares: of the parameter, of the step, a chunk each
  // Of a sparse gradient.
  bool is_sparse_ = false;
  SparseRows sparse_rows_ = SparseRows::kAll;
  int merge_workspace_ = -1;
  int row_workspace_ = -1;    // sums of repeated rows
  int dense_workspace_ = -1;  // the gradient, for a formula that needs norms
  // Of the run.
  std::vector<UpdateRange<T>> ranges_;
  std::vector<UpdateRange<T>> row_ranges_;
  std::vector<int64_t> begins_;  // the elements before each range, and at the end all of them
  std::vector<Norms> norms_;
};

}  // namespace skiff
