// The common base of the CPU kernels of all optimizers. One run is
//
//   SkipUpdate is true:  the outputs become the inputs
//   otherwise:           the numbers of all parameters are read, the subclass updates the
//                        parameters, states that the formula doesn't move are copied, scalars are
//                        advanced
//
// The subclasses are DenseUpdate, SparseUpdate and NormUpdate. An element's result depends neither
// on the number of threads nor on where the element is: parameters in one flat buffer, in a list
// or in an op, and parts of parameters, each get the same bits.
//
// With multi_precision the kernels update the master weights. They read two-byte gradients, and
// write two-byte parameters, block by block while the block is in the first cache.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/parameter_numbers.h"
#include "operators/optimizer/kernels/range_list.h"
#include "operators/optimizer/kernels/update_arguments.h"
#include "operators/optimizer/kernels/update_loop.h"
#include "operators/optimizer/kernels/update_numbers.h"
#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

// T is the type that the formula computes in, float or double.
template <typename T>
class UpdateKernel : public Kernel {
 public:
  void Bind(const KernelContext& run) final;
  void Run(const KernelContext& run) final;

 protected:
  UpdateKernel(const OpContext& context, UpdateLoop<T> update, const CoefficientRule& rule);

  const UpdateArguments& arguments() const { return arguments_; }
  // Converts arrays of the parameters' dtype. Empty functions without multi_precision.
  const HalfArrays& halves() const { return halves_; }
  ParameterNumbers& numbers() { return numbers_; }

  // Returns parameter i with its states as a range. Its coefficients and GradScale are missing, and
  // so is its gradient, which counts as 0.
  UpdateRange<T> RangeWithoutGradient(const KernelContext& run, size_t i) const;
  // Returns the same with the gradient, which must be dense.
  UpdateRange<T> DenseRange(const KernelContext& run, size_t i) const;
  // Sets the coefficients and GradScale of a range, as the numbers of its parameter say.
  void SetCoefficients(UpdateRange<T>* range) const;
  void SetCoefficients(RangeList<T>* ranges) const;
  // Copies each input with a next value to the output of that value, unless both share memory.
  void CopyInputsToOutputs(const KernelContext& run) const;
  // Applies the formula to all elements of the ranges, on all threads.
  void UpdateElements(const RangeList<T>& ranges) const;

 private:
  // Looks up the addresses of the parameters' arrays, as Kernel::Bind does.
  virtual void BindRanges(const KernelContext& run) = 0;
  // Updates all parameters. numbers() are those of the run.
  virtual void Update(const KernelContext& run) = 0;
  // Copies arrays of which the op updates only a part, as CopyInputsToOutputs does.
  void CopyOtherElements(const KernelContext& run) const;
  void UpdateBlock(const RangeList<T>& ranges, int64_t begin, int64_t end) const;

  UpdateLoop<T> update_;
  CoefficientRule rule_;
  UpdateArguments arguments_;
  HalfArrays halves_;
  std::vector<GradientForm<T>> forms_;           // by parameter, without GradScale
  std::vector<UpdateArguments::Pair> in_place_;  // every input with a next value
  ParameterNumbers numbers_;
};

}  // namespace skiff
