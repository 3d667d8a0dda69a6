// Lists of fusions (fusion.h), and their application to a plan.
#pragma once

#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "framework/transpiler/fusion.h"
#include "framework/transpiler/pass.h"

namespace skiff {

// Fusions that are checked once for a registry; a pass has one static list. Registries are told
// apart by their addresses, so a new registry at an old address isn't checked.
class FusionList {
 public:
  FusionList(std::vector<Fusion> fusions) : fusions_(std::move(fusions)) {}  // NOLINT
  FusionList(std::initializer_list<Fusion> fusions) : fusions_(fusions) {}

  // Returns the fusions. Throws an Error (kInvalidArgument) for a fusion with a name that nothing
  // has (fusion_check.h).
  const std::vector<Fusion>& CheckedFor(const OpRegistry& registry) const;

 private:
  std::vector<Fusion> fusions_;
  mutable std::atomic<const OpRegistry*> checked_for_ = nullptr;
};

// Applies the fusions in order, each wherever it fits in the whole plan. `changes`: the number of
// fused ops. Passes over a fusion into an op that the registry lacks. Throws what
// FusionList::CheckedFor throws.
PassReport ApplyFusions(const PassContext& context, const FusionList& fusions, Plan* plan);

}  // namespace skiff
