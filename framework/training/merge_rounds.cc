#include "framework/training/merge_rounds.h"

#include <algorithm>
#include <cstdint>

#include "framework/base/error.h"
#include "framework/builder/gradient_merge.h"
#include "framework/ir/program.h"

namespace skiff::training {
namespace {

bool IsCount(const std::string& name) { return name.starts_with(kMergedCount); }

int64_t CountIn(const Tensor& value) { return CopyToCpu(value).Item<int64_t>(); }

}  // namespace

MergeRounds::MergeRounds(const Program& program) {
  for (const auto& var : program.root()->vars()) {
    if (var->persistable && IsCount(var->name)) counts_.push_back(var->name);
  }
}

bool MergeRounds::AreOver(const Scope& scope) const {
  return std::ranges::all_of(
      counts_, [&](const std::string& name) { return CountIn(scope.Get(name)) == 0; });
}

bool IsOfMergeRound(const std::string& name) {
  return IsCount(name) || name.find(kMergedGradient) != std::string::npos;
}

void CheckBetweenRounds(const std::string& name, const Tensor& value) {
  if (!IsCount(name)) return;
  const int64_t count = CountIn(value);
  SKIFF_ENFORCE(
      count == 0, kFailedPrecondition, "the checkpoint was made ", count,
      " steps after the last update, within a round of gradient_merge: expected one between "
      "two rounds, from which any number of ranks can go on");
}

}  // namespace skiff::training
