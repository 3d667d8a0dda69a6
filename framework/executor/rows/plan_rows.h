// The rows (dim 0) of the values of a plan for a capacity, in each run: affine forms of the counts
// that are known when the run starts, such as 12 * tokens or tokens_a + tokens_b.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/rows/row_forms.h"
#include "framework/executor/rows/row_probes.h"
#include "framework/plan/plan.h"

namespace skiff {

class PlanRows {
 public:
  // Finds the forms by inferring the plan's shapes for several counts. Throws the Errors of
  // RowProbes, and an Error (kUnimplemented), which names the op, if a shape has no form: another
  // dim than the first varies, or the rows follow from the counts in another way.
  PlanRows(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
           const CountClasses& classes, ServedCounts served = ServedCounts::kCapacity);

  // Sets `rows` to the rows of each form in a run. `counts` has the run's counts of feeds, by
  // class, and gets the counts of the LoDs appended. Returns false if the plan doesn't serve the
  // run: a count exceeds the capacity; a count or the rows of a value are 0, which some ops refuse;
  // or two counts differ that were equal in all probes, since a rule may have used either count for
  // the other, or may demand equal counts.
  //
  // A count of -1 isn't known yet; rows that depend on such a count are -1, too. In a body, 0 is a
  // count like any other.
  bool Evaluate(const RunLoDs& lods, std::vector<int64_t>* counts,
                std::vector<int64_t>* rows) const;

  // A value whose rows vary.
  struct Varying {
    ValueId value;
    size_t form = 0;
    int axis = 0;  // RowVariation::axis
  };
  const std::vector<Varying>& values() const { return values_; }

  // Of a body: returns whether an op refuses few rows or none, or gives other rows than the forms.
  // Then LoopRows must ask the shape rules of ops that read values with varying rows (CheckRules).
  bool has_limits() const { return has_limits_; }

 private:
  void FindForms(const Plan& plan, const PlanLoDs& lods, const RowProbes& probes);
  void FindEqualCounts(const CountProbes& probes);
  // Returns whether the rules refuse feeds without rows, or give other rows than the forms.
  bool HasLimits(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                 const CountClasses& classes) const;
  // Returns whether the plan serves this many rows or sequences.
  bool IsServed(int64_t count, int64_t capacity) const;
  bool HasServedCounts(const std::vector<int64_t>& counts) const;

  const ServedCounts served_;
  std::vector<int64_t> capacity_;         // of each count
  std::vector<size_t> counts_of_groups_;  // how many counts each LoD has
  // Pairs of counts that are equal in every probe.
  std::vector<std::pair<size_t, size_t>> equal_counts_;
  std::vector<RowForm> forms_;
  // Other forms with the same rows in every probe, each with the place of its counterpart in
  // forms_.
  std::vector<std::pair<size_t, RowForm>> rivals_;
  std::vector<Varying> values_;
  bool has_limits_ = false;
};

}  // namespace skiff
