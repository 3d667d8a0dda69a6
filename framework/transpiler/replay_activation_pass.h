// Recomputes the output of an op, such as a batch norm, where the backward pass needs it, if a
// replay costs less work (OpDef::replayed_by). So the output isn't kept from the forward pass on.
//
//   before                                          after
//     r = batch_norm_act(x, …)                        r = batch_norm_act(x, …)
//     c = conv2d(r, w)                                c = conv2d(r, w)
//     …                                               …
//     dr, dw = conv2d_grad(r, w, dc)                  r' = batch_norm_replay(x, …)
//     dx, … = batch_norm_act_grad(x, dr, …)           dr, dw = conv2d_grad(r', w, dc)
//                                                     dx, … = batch_norm_act_grad(x, dr, …)
//
// x is kept for the gradient of the batch norm anyway; the replay costs one pass over memory. The
// pass replays nothing if the replay reads a second input as large as r (the other operand of an
// addition), if r is fetched, if x isn't needed longer than r, or if x is itself a replayed output,
// which isn't kept either. The replay gives the same bits. `changes`: replays.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class ReplayActivationPass final : public PlanPass {
 public:
  std::string_view name() const override { return "replay_activation"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
