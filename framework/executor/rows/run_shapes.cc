#include "framework/executor/rows/run_shapes.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/executor/rows/known_contents.h"

namespace skiff {

RunShapes::RunShapes(const OpRegistry& registry, const Plan& plan, const CountClasses* counts)
    : registry_(registry), plan_(plan), lods_(plan), next_lods_(lods_.Room()) {
  if (counts == nullptr) return;
  counts_ = *counts;
  capacity_ = counts->Capacity();
  rows_.emplace(registry, plan, lods_, *counts);
  for (const PlanRows::Varying& varying : rows_->values()) varying_.insert(varying.value);
}

bool RunShapes::Varies(const Instruction& instruction) const {
  const auto varies = [&](ValueId value) { return varying_.contains(value); };
  return std::ranges::any_of(instruction.inputs, varies) ||
         std::ranges::any_of(instruction.outputs, varies);
}

bool RunShapes::Serves(const FeedList& feeds) { return ServesShapes(feeds) && ServesLoDs(feeds); }

bool RunShapes::ServesShapes(const FeedList& feeds) {
  if (feeds.size() != plan_.feeds.size()) return false;
  next_counts_.assign(capacity_.size(), -1);
  for (size_t i = 0; i < feeds.size(); ++i) {
    const auto& [name, tensor] = feeds[i];
    const PlanValue& planned = plan_[plan_.feeds[i]];
    const LoDGroup* lod = CountedLoD(planned.meta);
    const size_t levels = lod == nullptr ? 0 : lod->offsets.size();
    if (name != planned.name || tensor.dtype() != planned.meta.dtype ||
        tensor.lod().size() != levels) {
      return false;
    }
    if (counts_ && counts_->Varies(i)) {
      if (!DifferInRowsAlone(tensor.shape(), planned.meta.shape)) return false;
      if (!counts_->Gather(i, tensor.shape()[0], tensor.lod(), &next_counts_)) return false;
    } else if (tensor.shape() != planned.meta.shape) {
      return false;
    }
  }
  for (size_t i = 0; i < capacity_.size(); ++i) {
    if (CapacityFor(next_counts_[i]) != capacity_[i]) return false;
  }
  return true;
}

bool RunShapes::ServesLoDs(const FeedList& feeds) {
  next_of_feeds_.clear();
  for (const auto& [name, tensor] : feeds) next_of_feeds_.push_back(&tensor.lod());
  try {
    lods_.Derive(next_of_feeds_, &next_lods_);
  } catch (const Error&) {
    // LoDs that an op refuses: the plan that is made for them will name it.
    return false;
  }
  if (rows_) return rows_->Evaluate(next_lods_, &next_counts_, &next_rows_);
  return lods_.HavePlannedCounts(next_lods_);
}

void RunShapes::Set(BoundValues* values) {
  lods_.Set(&next_lods_);
  current_rows_ = next_rows_;
  has_current_shapes_ = false;
  if (!rows_) return;
  for (const auto& [value, form, axis] : rows_->values()) {
    Tensor& tensor = *values->Of(value);
    if (plan_[value].storage != Storage::kArena || !tensor.has_data()) continue;
    SetRowsAt(axis, current_rows_[form], &tensor);
  }
}

const Plan& RunShapes::CurrentPlan() {
  if (!rows_) return plan_;
  if (has_current_shapes_) return *current_plan_;
  if (!current_plan_) current_plan_ = plan_;
  for (const auto& [value, form, axis] : rows_->values()) {
    (*current_plan_)[value].meta.shape[axis] = current_rows_[form];
  }
  lods_.GiveTo(&*current_plan_);
  FollowShapes(registry_, plan_, 0, plan_.instructions.size(), &*current_plan_);
  has_current_shapes_ = true;
  return *current_plan_;
}

}  // namespace skiff
