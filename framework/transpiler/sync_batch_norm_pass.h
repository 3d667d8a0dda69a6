// Makes the batch norms of a training program take the statistics of the batches of all ranks, as
// if these were one batch.
//
//   before                                       after
//     y = batch_norm(x, …)                         y = sync_batch_norm(x, …)
//     x@GRAD = batch_norm_grad(x, y@GRAD, …)       x@GRAD = sync_batch_norm_grad(x, y@GRAD, …)
//
// An op that doesn't take the statistics of its batch stays as it is, and so does a program without
// updates, which a rank may run alone. Throws an Error (kUnimplemented) with the place of an op in
// a loop or branch, which ranks needn't run as often as each other. `changes`: batch norms.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class SyncBatchNormPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "sync_batch_norm"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
