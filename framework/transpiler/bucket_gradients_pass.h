// Sums the gradients of several parameters over the ranks at once, since each sum costs a latency.
//
//   before                                         after
//     w2@GRAD@SUM = c_allreduce_sum(w2@GRAD)         w1@GRAD = mul_grad(…)
//     w1@GRAD = mul_grad(…)                          w2@GRAD@SUM, w1@GRAD@SUM =
//     w1@GRAD@SUM = c_allreduce_sum(w1@GRAD)             c_allreduce_list(w2@GRAD, w1@GRAD)
//
// A bucket has the next gradients in the order in which the backward pass makes the gradients,
// until they have DataParallelOptions::bucket_bytes; the list takes the place of the last of its
// ops. The last bucket of a step, for which nothing is left to compute meanwhile, has at most 4 MiB
// unless one gradient has more. Ops are in a bucket together if they have the same attributes,
// dtype and Skip, and if no op between them reads a sum. Sparse gradients stay alone. The sums have
// the same bits. `changes`: ops that went into lists.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class BucketGradientsPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "bucket_gradients"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
