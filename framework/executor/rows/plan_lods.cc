#include "framework/executor/rows/plan_lods.h"

#include <algorithm>
#include <utility>

namespace skiff {
namespace {

// Keeps the memory of the levels.
void Forget(size_t levels, LoD* lod) {
  lod->resize(levels);
  for (auto& offsets : *lod) offsets.clear();
}

}  // namespace

bool IsUnknown(const LoD& lod) { return !lod.empty() && lod.front().empty(); }

LoD RoomForLoD(const LoD& like) {
  LoD room(like.size());
  for (size_t level = 0; level < like.size(); ++level) room[level].reserve(like[level].size());
  return room;
}

PlanLoDs::PlanLoDs(const Plan& plan) : plan_(plan) {
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const TensorMeta& meta = plan[plan.feeds[i]].meta;
    // The tensor of a rank table has the LoD of what it ranks.
    const auto& group = meta.lod != nullptr ? meta.lod : meta.shape_lod;
    if (group != nullptr) groups_[Add(group)].feed = i;
  }
  for (const ValueId id : plan.ids()) {
    const TensorMeta& meta = plan[id].meta;
    // No tensor has it, but its counts must fit.
    if (meta.shape_lod != nullptr) Add(meta.shape_lod);
    // Those of the scope have LoDs of their own.
    const Storage storage = plan[id].storage;
    const bool is_own = storage == Storage::kArena || storage == Storage::kStack;
    if (meta.lod == nullptr || !is_own) continue;
    groups_[Add(meta.lod)].values.push_back(id);
  }
  for (Group& group : groups_) *group.lod = RoomForLoD(group.group->offsets);
}

RunLoDs PlanLoDs::Room() const {
  RunLoDs lods;
  size_t most_parents = 0;
  for (const Group& group : groups_) {
    lods.of_groups.push_back(RoomForLoD(group.group->offsets));
    most_parents = std::max(most_parents, group.parents.size());
  }
  lods.parents.reserve(most_parents);
  return lods;
}

size_t PlanLoDs::Add(const std::shared_ptr<const LoDGroup>& group) {
  const auto found = std::ranges::find(groups_, group, &Group::group);
  if (found != groups_.end()) return static_cast<size_t>(found - groups_.begin());
  Group added{.group = group, .parents = {}, .feed = {}, .values = {}};
  for (const auto& parent : group->parents) added.parents.push_back(Add(parent));
  groups_.push_back(std::move(added));
  return groups_.size() - 1;
}

void PlanLoDs::Derive(std::span<const LoD* const> of_feeds, RunLoDs* lods) const {
  lods->of_groups.resize(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    LoD& lod = lods->of_groups[i];
    if (group.feed.has_value()) {
      if (of_feeds[*group.feed] == nullptr) {
        Forget(group.group->offsets.size(), &lod);
      } else {
        lod = *of_feeds[*group.feed];
      }
    } else if (group.group->derive) {
      lods->parents.clear();
      for (const size_t parent : group.parents) lods->parents.push_back(&lods->of_groups[parent]);
      if (std::ranges::any_of(lods->parents, [](const LoD* lod) { return IsUnknown(*lod); })) {
        Forget(group.group->offsets.size(), &lod);
      } else {
        group.group->derive(lods->parents, &lod);
      }
    } else {
      // Of a variable in the scope, as it was when the plan was made.
      lod = group.group->offsets;
    }
  }
}

bool PlanLoDs::HavePlannedCounts(const RunLoDs& lods) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!HaveSameCounts(lods.of_groups[i], groups_[i].group->offsets)) return false;
  }
  return true;
}

void PlanLoDs::Bind(ValueTensors* values) const {
  for (const Group& group : groups_) {
    for (const ValueId value : group.values) values->Of(value)->ShareLoD(group.lod);
  }
}

void PlanLoDs::Set(RunLoDs* lods) {
  for (size_t i = 0; i < groups_.size(); ++i) std::swap(*groups_[i].lod, lods->of_groups[i]);
}

void PlanLoDs::AppendOffsets(std::vector<int64_t>* offsets) const {
  for (const Group& group : groups_) {
    for (const auto& level : *group.lod) {
      offsets->push_back(std::ssize(level));
      offsets->insert(offsets->end(), level.begin(), level.end());
    }
  }
}

std::optional<size_t> PlanLoDs::PlaceOf(const std::shared_ptr<const LoDGroup>& group) const {
  const auto found = std::ranges::find(groups_, group, &Group::group);
  if (group == nullptr || found == groups_.end()) return std::nullopt;
  return static_cast<size_t>(found - groups_.begin());
}

std::optional<size_t> PlanLoDs::GroupOf(ValueId value) const {
  return PlaceOf(plan_[value].meta.lod);
}

std::optional<size_t> PlanLoDs::ShapeGroupOf(ValueId value) const {
  return PlaceOf(plan_[value].meta.shape_lod);
}

const LoD* PlanLoDs::Of(ValueId value) const {
  const std::optional<size_t> place = GroupOf(value);
  return place ? groups_[*place].lod.get() : nullptr;
}

const LoD* PlanLoDs::OfShape(ValueId value) const {
  const std::optional<size_t> place = ShapeGroupOf(value);
  return place ? groups_[*place].lod.get() : nullptr;
}

void PlanLoDs::GiveTo(Plan* current) const {
  const auto set = [](const LoD* lod, std::shared_ptr<const LoDGroup>* group) {
    if (lod == nullptr || IsUnknown(*lod)) return;
    *group = std::make_shared<const LoDGroup>(LoDGroup{.offsets = *lod});
  };
  for (const ValueId id : plan_.ids()) {
    TensorMeta& meta = (*current)[id].meta;
    set(Of(id), &meta.lod);
    set(OfShape(id), &meta.shape_lod);
  }
}

const LoD* PlanLoDs::In(const RunLoDs& lods, ValueId value) const {
  const std::optional<size_t> place = GroupOf(value);
  return place ? &lods.of_groups[*place] : nullptr;
}

}  // namespace skiff
