// Computes activations again where the backward pass needs them, instead of keeping the values from
// the forward pass on (Chen et al., arXiv 1604.06174).
//
//   before                               after, with the checkpoint b
//     a = conv(x)                          a  = conv(x)
//     b = relu(a)                          b  = relu(a)
//     …                                    …
//     da = relu_grad(a, db)                a' = conv(x)
//                                          da = relu_grad(a', db)
//
// The pass cuts the forward pass into segments and keeps the values that a later segment reads. The
// backward pass computes the rest again, each op right before the first op that reads any of its
// results: by the kernel that computed it, or by an op that gives the same bits for less
// (OpDef::replayed_by). Random ops draw the same numbers again, and running statistics move once.
// The pass keeps the last segment, small values (whose ops run again only if other recomputed ops
// need them), and values that can't be computed again: outputs of ops with side effects, and of ops
// whose inputs in the scope have been written since.
//
// PassContext::memory has the options. Named checkpoints cut after the ops that write them.
// Otherwise the pass tries several ways to cut, with few bytes crossing each cut, and judges each
// by the plan's max live bytes. For a budget, the pass takes the cheapest sufficient way; if none
// suffices, the smallest (the executor then throws).
//
// kAlmostFree, the default, keeps values until what runs again costs at most 2 % of a step.
// Recomputation must save, as a share of the live bytes that fuse_elementwise leaves, at least 8
// times its cost as a share of a step; otherwise nothing runs again. Nothing runs again that is
// part of an update; in half, only replays do; on a device, where nobody has measured it, nothing
// does.
//
// The cost of an instruction is an estimate: the bytes that the instruction moves, of half as many
// as of float32, and the FLOP of a product, which count as bytes (FlopPerByte). Plan::recomputed
// has the result. `changes`: instructions added.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class RecomputePass final : public PlanPass {
 public:
  std::string_view name() const override { return "recompute"; }
  // Throws an Error (kNotFound, kInvalidArgument) for a checkpoint that the forward pass doesn't
  // write.
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
