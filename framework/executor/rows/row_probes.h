// Runs of a plan with several counts of rows and sequences, which are tried to find out how the
// rows of its values follow from the counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/rows/row_forms.h"
#include "framework/executor/rows/shape_inference.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Which runs a plan serves.
enum class ServedCounts {
  kCapacity,  // with counts that round up to the same capacity as the given counts
  kBody,      // of a loop's body: with counts from 0 up to the given counts
};

// Appends the counts of the LoDs of a run. `planned`: how many counts each LoD has. For a LoD that
// isn't known yet, appends so many times -1.
void AppendCountsOfGroups(const RunLoDs& lods, const std::vector<size_t>& planned,
                          std::vector<int64_t>* counts);

// How the shape of a value differs from probe to probe.
struct RowVariation {
  bool varies = false;
  // Whether only the dim at `axis` varies, and the LoD is one of the plan's groups.
  bool fits = true;
  // 0, or 1 for a value without elements that only carries a shape [0, rows, …] (XShape).
  int axis = 0;
  std::vector<int64_t> rows;  // by probe: the dim at `axis`
};

class RowProbes {
 public:
  // Infers the plan's shapes in each probe. Throws an Error (kUnimplemented) if an op refuses
  // counts that the plan should serve, or if a kernel is prepared for numbers that vary
  // (SlotDef::attribute). All arguments must outlive the object.
  RowProbes(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
            const CountClasses& classes, ServedCounts served);

  const CountProbes& counts() const { return probes_; }
  // Returns how many counts the LoD of each group has.
  const std::vector<size_t>& counts_of_groups() const { return counts_of_groups_; }
  // Of a body: returns whether an op refuses the probe with the fewest rows.
  bool refuses_fewest() const { return refuses_fewest_; }
  RowVariation VariationOf(ValueId value) const;

 private:
  void Add(ShapeInference inferred, std::vector<int64_t> counts);
  // Returns whether it is known, in all probes, which group's LoD the value has. A LoD that a rule
  // makes of shapes, and not of other LoDs, is known for the plan alone.
  bool KnowsLoD(ValueId value) const;
  void CheckGivenAttributes() const;

  const Plan& plan_;
  const PlanLoDs& lods_;
  CountProbes probes_;
  std::vector<ShapeInference> inferred_;  // by probe
  std::vector<size_t> counts_of_groups_;
  bool refuses_fewest_ = false;
};

}  // namespace skiff
