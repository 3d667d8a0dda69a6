// The LoDs of a plan's ragged values, in each run those of its feeds and what is derived from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "framework/executor/storage/bound_values.h"
#include "framework/op/lod_group.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns a LoD with as many levels as `like`, without offsets, and with room for as many.
LoD RoomForLoD(const LoD& like);

// Returns whether nobody knows the LoD as yet: it has levels without offsets.
bool IsUnknown(const LoD& lod);

// The LoDs of one run, by group. An object that is used again takes no memory as long as no LoD has
// more offsets than before, or than PlanLoDs::Room has left room for.
struct RunLoDs {
  std::vector<LoD> of_groups;
  std::vector<const LoD*> parents;  // of the group that is derived; for Derive alone
};

class PlanLoDs {
 public:
  explicit PlanLoDs(const Plan& plan);

  // Returns LoDs with room for those that the plan was made for.
  RunLoDs Room() const;
  // Sets `lods` to what follows from those of the feeds, which are in the order of the plan's; a
  // dense feed's isn't read. nullptr: the LoD isn't known yet, nor are those that follow from it
  // (IsUnknown). Throws what LoDGroup::Derive throws for LoDs that don't fit together.
  void Derive(std::span<const LoD* const> of_feeds, RunLoDs* lods) const;
  // Returns whether each LoD has as many sequences and rows as in the run that the plan was made
  // for.
  bool HavePlannedCounts(const RunLoDs& lods) const;

  // Lets the values of each group share one LoD, which Set changes.
  void Bind(ValueTensors* values) const;
  // Gives the groups these LoDs, and `lods` those that they had.
  void Set(RunLoDs* lods);
  // Appends the offsets of all groups in this run, those of each level behind their number.
  void AppendOffsets(std::vector<int64_t>* offsets) const;
  // Return the LoD of a value in this run, and in one with other LoDs; nullptr for a dense one.
  const LoD* Of(ValueId value) const;
  const LoD* In(const RunLoDs& lods, ValueId value) const;
  // Returns the LoD on which the value's shape depends, in this run; nullptr if there is none.
  const LoD* OfShape(ValueId value) const;
  // Gives the values of `moment`, a copy of the plan with other rows, the LoDs of this run as far
  // as they are known, and those on which their shapes depend.
  void GiveTo(Plan* moment) const;
  // Returns the place of the value's group among RunLoDs::of_groups, and of the group on which its
  // shape depends; nothing if it has none.
  std::optional<size_t> GroupOf(ValueId value) const;
  std::optional<size_t> ShapeGroupOf(ValueId value) const;

 private:
  struct Group {
    std::shared_ptr<const LoDGroup> group;
    std::vector<size_t> parents;  // earlier groups
    std::optional<size_t> feed;   // whose LoD it is
    std::vector<ValueId> values;
    std::shared_ptr<LoD> lod = std::make_shared<LoD>();  // in this run
  };

  // Returns the place of a group, which it appends after those that it is derived from.
  size_t Add(const std::shared_ptr<const LoDGroup>& group);
  std::optional<size_t> PlaceOf(const std::shared_ptr<const LoDGroup>& group) const;

  const Plan& plan_;
  std::vector<Group> groups_;
};

}  // namespace skiff
