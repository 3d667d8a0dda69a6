#include "framework/executor/plan_lods.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {

PlanLoDs::PlanLoDs(const Plan& plan) {
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const PlanValue& value = plan[plan.feeds[i]];
    if (value.meta.lod != nullptr) groups_[Add(value.meta.lod)].feed = i;
  }
  for (const ValueId id : plan.ids()) {
    // Those of the scope have LoDs of their own.
    if (plan[id].meta.lod == nullptr || plan[id].storage != Storage::kArena) continue;
    groups_[Add(plan[id].meta.lod)].values.push_back(id);
  }
}

size_t PlanLoDs::Add(const std::shared_ptr<const LoDGroup>& group) {
  const auto found = std::ranges::find(groups_, group.get(), &Group::group);
  if (found != groups_.end()) return static_cast<size_t>(found - groups_.begin());
  Group added{.group = group.get(), .parents = {}, .feed = {}, .values = {}};
  for (const auto& parent : group->parents) added.parents.push_back(Add(parent));
  groups_.push_back(std::move(added));
  return groups_.size() - 1;
}

PlanLoDs::SharedLoDs PlanLoDs::Of(const FeedList& feeds) const {
  SharedLoDs lods;
  for (const Group& group : groups_) {
    if (group.feed.has_value()) {
      lods.push_back(feeds[*group.feed].second.shared_lod());
    } else if (group.group->derive) {
      std::vector<const LoD*> parents;
      for (const size_t parent : group.parents) parents.push_back(lods[parent].get());
      lods.push_back(std::make_shared<const LoD>(group.group->derive(parents)));
    } else {
      // Of a variable in the scope.
      lods.push_back(std::make_shared<const LoD>(group.group->offsets));
    }
  }
  return lods;
}

bool PlanLoDs::Fit(const SharedLoDs& lods) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!HaveSameCounts(*lods[i], groups_[i].group->offsets)) return false;
  }
  return true;
}

bool PlanLoDs::Fit(const FeedList& feeds) const {
  try {
    return groups_.empty() || Fit(Of(feeds));
  } catch (const Error&) {
    // LoDs that an op refuses: the plan that is made for them will name it.
    return false;
  }
}

void PlanLoDs::Bind(const FeedList& feeds, BoundValues* values) const {
  const SharedLoDs lods = Of(feeds);
  SKIFF_ENFORCE(Fit(lods), kInvalidArgument,
                "the feeds have LoDs for which other shapes follow than those of the plan");
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const ValueId value : groups_[i].values) values->Of(value)->ShareLoD(lods[i]);
  }
}

}  // namespace skiff
