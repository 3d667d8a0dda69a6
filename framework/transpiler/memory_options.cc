#include "framework/transpiler/memory_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::array<std::pair<Recompute, std::string_view>, 6> kRecomputeNames = {
    {{Recompute::kNothing, "nothing"},
     {Recompute::kAlmostFree, "almost_free"},
     {Recompute::kCheapOps, "cheap_ops"},
     {Recompute::kCheckpoints, "checkpoints"},
     {Recompute::kBudget, "budget"},
     {Recompute::kLeastMemory, "least_memory"}}};

}  // namespace

std::string_view RecomputeName(Recompute recompute) {
  return std::ranges::find(kRecomputeNames, recompute,
                           &std::pair<Recompute, std::string_view>::first)
      ->second;
}

Recompute ParseRecompute(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [recompute, known] : kRecomputeNames) {
    if (known == name) return recompute;
    names.push_back(known);
  }
  Throw(ErrorCode::kInvalidArgument, "recompute \"", name, "\": expected one of ",
        Join(names, ", "));
}

void MarkNamedValues(const MemoryOptions& memory, Plan* plan) {
  for (PlanValue& value : plan->values) {
    value.is_exclusive = std::ranges::count(memory.skip, value.name) > 0;
    value.is_checkpoint = std::ranges::count(memory.checkpoints, value.name) > 0;
  }
}

}  // namespace skiff
