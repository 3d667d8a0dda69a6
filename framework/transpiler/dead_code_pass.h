// Drops instructions whose results nobody needs for this set of fetches: what isn't fetched,
// written to the scope, a side effect, or read by something that is needed.
//
//   fetching only loss: the accuracy branch (top_k, accuracy) of a training program goes.
//
// `changes`: instructions dropped.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class DeadCodePass final : public PlanPass {
 public:
  std::string_view name() const override { return "dead_code"; }
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

}  // namespace skiff
