// The LoDs of a plan's ragged values: in each run the LoDs of the feeds, and LoDs derived from
// these.
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

// Returns a LoD with as many levels as `like`, without offsets, and with room for as many offsets.
LoD RoomForLoD(const LoD& like);

// Returns whether the LoD isn't known yet: it has levels without offsets.
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

  // Returns LoDs with room for the LoDs that the plan was made for.
  RunLoDs Room() const;
  // Sets `lods` to the LoDs that follow from `of_feeds`, which has an element for each of the
  // plan's feeds, not read for a dense feed. nullptr: the feed's LoD isn't known yet; all LoDs that
  // follow from it become unknown (IsUnknown). Throws the Errors of LoDGroup::Derive for LoDs that
  // don't fit together.
  void Derive(std::span<const LoD* const> of_feeds, RunLoDs* lods) const;
  // Returns whether each LoD has as many sequences and rows as in the run that the plan was made
  // for.
  bool HavePlannedCounts(const RunLoDs& lods) const;

  // Lets the values of each group share one LoD, which Set changes.
  void Bind(ValueTensors* values) const;
  // Swaps the LoDs of the groups with `lods`.
  void Set(RunLoDs* lods);
  // Appends the offsets of all groups in this run, each level as the number of its offsets and then
  // the offsets.
  void AppendOffsets(std::vector<int64_t>* offsets) const;
  // Return the LoD of a value in this run, and in a run with the LoDs `lods`; nullptr for a dense
  // value.
  const LoD* Of(ValueId value) const;
  const LoD* In(const RunLoDs& lods, ValueId value) const;
  // Returns the LoD of this run on which the value's shape depends; nullptr if there is none.
  const LoD* OfShape(ValueId value) const;
  // `current` is a copy of the plan with other rows. Sets for each value there the LoD in this run,
  // and the LoD on which the shape depends, as far as these are known.
  void GiveTo(Plan* current) const;
  // Return the place among RunLoDs::of_groups of the value's group, and of the group on which its
  // shape depends; nothing if there is no such group.
  std::optional<size_t> GroupOf(ValueId value) const;
  std::optional<size_t> ShapeGroupOf(ValueId value) const;

 private:
  struct Group {
    std::shared_ptr<const LoDGroup> group;
    std::vector<size_t> parents;  // earlier groups
    std::optional<size_t> feed;   // the feed with this LoD
    std::vector<ValueId> values;
    std::shared_ptr<LoD> lod = std::make_shared<LoD>();  // in this run
  };

  // Returns the place of a group, which it appends after the group's parents.
  size_t Add(const std::shared_ptr<const LoDGroup>& group);
  std::optional<size_t> PlaceOf(const std::shared_ptr<const LoDGroup>& group) const;

  const Plan& plan_;
  std::vector<Group> groups_;
};

}  // namespace skiff
