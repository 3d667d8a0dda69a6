// Computes activations once more where the backward pass needs them, so that they need not be kept
// from the forward pass on (Chen et al., arXiv 1604.06174).
//
//   before                               after, with the checkpoint b
//     a = conv(x)                          a  = conv(x)
//     b = relu(a)                          b  = relu(a)
//     …                                    …
//     da = relu_grad(a, db)                a' = conv(x)
//                                          da = relu_grad(a', db)
//
// The forward pass is cut into segments. What a later segment reads is kept; the rest that the
// backward pass reads is computed again, each op right before the first one that reads any of it,
// by the kernels that computed it or by the op that gives the same bits for less
// (OpDef::replayed_by). Ops that draw numbers draw the same ones; running statistics move once. The
// last segment is kept, and so are small values (their ops run again only where others need them)
// and what can't be computed again: outputs of ops with side effects, and of ops whose inputs in
// the scope have been written since.
//
// Plan::memory says what is wanted. Checkpoints cut behind the ops that write them. Else cuts are
// chosen: several ways to cut, with few bytes crossing each cut, are tried on the plan and judged
// by its max live bytes. For a budget the cheapest is taken that meets it, where FLOP count and the
// bytes that an op moves count as kFlopPerByte each; if none does, the smallest (the executor then
// says so). Runs behind common_subexpression, which would undo it. `changes`: instructions added.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class RecomputePass final : public PlanPass {
 public:
  std::string_view name() const override { return "recompute"; }
  // Error (kNotFound, kInvalidArgument) for a checkpoint that the forward pass doesn't write.
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

}  // namespace skiff
