// Lets collective instructions run beside the others, in the communication stream
// (PlanStream::kCommunication). Each moves up to behind the last instruction that it depends on.
// The main stream waits for it where its results are first used, or its inputs overwritten.
// Optimizer ops that wait come last, and until then the gradients live.
//
//   before                          after
//     g = mul_grad(…)                 g = mul_grad(…)
//     s = c_allreduce_sum(g)          s = c_allreduce_sum(g) @comm(c0)
//     w = sgd(w, s)                   h = mul_grad(…)
//     h = mul_grad(…)                 t = c_allreduce_sum(h) @comm(c1)
//     t = c_allreduce_sum(h)          w = sgd(w, s) wait(c0)
//     v = sgd(v, t)                   v = sgd(v, t) wait(c1)
//
// It runs if asked for; the executor asks for it if several ranks run a program. It comes before
// memory_reuse, which then lets values of the communication stream live until the wait and adds no
// wait of its own. `changes`: instructions in the communication stream.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class OverlapCollectivesPass final : public PlanPass {
 public:
  std::string_view name() const override { return "overlap_collectives"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
