// The gradients of a scaled loss, for check_finite_and_unscale and update_loss_scaling: lists X and
// Out of tensors of any floating-point dtypes, of which Out[i] may be X[i].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "operators/optimizer/kernels/list_walk.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {

// For shape rules: throws Error unless all X are floating-point and each has an Out, which gets its
// shape, dtype and LoD.
void InferScaledGradients(OpContext& context);

// The lists X and Out of a CPU kernel.
class ScaledGradients {
 public:
  explicit ScaledGradients(const OpContext& context) : pairs_(PairsOf(context, "X", "Out")) {
    begins_.resize(pairs_.size() + 1);
  }

  // Calls body(x, out, i, begin, end) for elements [begin, end) of each X[i] and Out[i], on all
  // threads: at most kListBlock elements at a time. Afterwards Out has the row numbers of X, where
  // these are selected rows.
  template <typename Body>
  void ForEach(const KernelContext& run, const Body& body) {
    for (size_t i = 0; i < pairs_.size(); ++i) {
      begins_[i + 1] = begins_[i] + run.input(pairs_[i].in).element_count();
    }
    ForEachBlock(begins_.back(), [&](int64_t begin, int64_t end) {
      ForEachArray(begins_, begin, end, [&](size_t i, int64_t first, int64_t last) {
        body(run.input(pairs_[i].in), run.output(pairs_[i].out), i, first, last);
      });
    });
    CopyAllRowNumbers(run);
  }

 private:
  void CopyAllRowNumbers(const KernelContext& run) const;

  std::vector<UpdateArguments::Pair> pairs_;
  std::vector<int64_t> begins_;  // the elements before each X, and at the end all of them
};

}  // namespace skiff
