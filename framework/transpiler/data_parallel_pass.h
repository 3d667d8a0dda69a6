// Makes a training program one that several ranks run together, each on batches of its own: the
// gradients are summed over the ranks before anything reads them that decides an update.
//
//   before                                  after
//     w@GRAD = mul_grad(…)                    w@GRAD = mul_grad(…)
//     c = clip(w@GRAD)                        w@GRAD@SUM = c_allreduce_sum(w@GRAD) {mean = true}
//     w = sgd(w, c)                           c = clip(w@GRAD@SUM)
//                                             w = sgd(w, c)
//
// The mark op_role_var names the gradient of each parameter, on the op that completes the gradient
// or on the update. The sum of a gradient of two bytes is float32; c_allreduce_rows sums sparse
// gradients. Ops of the role Optimize read the sum. If they change the gradient in place, as
// PaddlePaddle's clips do, they change the sum instead. Other ops still read the gradient of the
// rank, and so does a fetch.
//
// Where gradients of several runs add up (OpDef::accumulation), the sums of a round are summed over
// the ranks instead, in the last run of the round.
//
// Running statistics (OpDef::running_state) aren't updated by the op that has the batch any more:
// c_batch_norm_statistics updates them by the moments of all ranks, in the order of ranks. Only the
// collective op sync_batch_norm, which has the batches of all ranks, updates them itself.
//
// A gradient that all ranks get from a collective op is summed already: PaddlePaddle's Fleet makes
// such programs.
//
// Then all ranks keep the same persistables. Throws an Error (kUnimplemented) with the place of the
// op if one would differ, since an op computes it from data of the rank: a metric that the training
// program accumulates, for example. Also throws it for an op that updates parameters in a block of
// another op or without the role Optimize, and for a gradient of which a rank has only a part
// (c_reducescatter). A program without updates, and a program of one rank, stay as they are.
// `changes`: gradients.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class DataParallelPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "data_parallel"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
