// Drops instructions that the fetches don't need: instructions that have no side effect, write
// nothing to the scope, and whose results are neither fetched nor read by an instruction that is
// needed.
//
//   if only the loss is fetched, the accuracy branch (top_k, accuracy) of a training program goes
//
// `changes`: instructions dropped.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class DeadCodePass final : public PlanPass {
 public:
  std::string_view name() const override { return "dead_code"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
