// The rows (dim 0) of the values of a plan for a capacity, in each run: affine forms of the counts
// that are known when it starts, such as 12 * tokens or tokens_a + tokens_b.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "framework/executor/plan_lods.h"
#include "framework/executor/row_counts.h"
#include "framework/plan/plan.h"

namespace skiff {

class PlanRows {
 public:
  enum class Kind {
    kCapacity,  // the plan serves all counts that round up to the capacity of those given
    kBody,      // it serves the counts given and all smaller ones, 0 included
  };
  // Finds the forms by inferring the plan's shapes for several counts. Throws an Error
  // (kUnimplemented), which names the op, if there is a shape that has none (another dim than the
  // first varies, or its rows follow from the counts in another way), if an op refuses counts that
  // it should serve, or if a kernel is prepared for numbers that vary (SlotDef::attribute).
  PlanRows(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
           const CountClasses& classes, Kind kind = Kind::kCapacity);

  // Sets `rows` to those of each form in a run, whose counts of feeds are given by class. Returns
  // false if the plan doesn't serve the run: it hasn't the capacity; a count or the rows of a value
  // are 0, which some ops refuse; or two counts differ that were equal in all runs that were tried,
  // so that a rule may have taken one for the other, or have found them to fit together. The counts
  // of the LoDs are appended to `counts`.
  //
  // A count of -1 isn't known yet; neither are the rows, then -1, that depend on it. In a body, 0
  // is a count like any other.
  bool Evaluate(const RunLoDs& lods, std::vector<int64_t>* counts,
                std::vector<int64_t>* rows) const;

  // A value whose rows vary.
  struct Varying {
    ValueId value;
    size_t form = 0;
    // 0, or 1 for a value without elements that only carries a shape [0, rows, …] (XShape).
    int axis = 0;
  };
  const std::vector<Varying>& values() const { return values_; }

  // Of a body: whether an op refuses few rows or none, or gives them others than the forms do. Then
  // whoever sets rows must ask the shape rules of the ops that read them.
  bool has_limits() const { return has_limits_; }

 private:
  struct Term {
    size_t count = 0;
    int64_t factor = 0;
  };
  // (sum of the terms + constant) / divisor
  struct Form {
    std::vector<Term> terms;
    int64_t constant = 0;
    int64_t divisor = 1;
    int64_t capacity = 0;
  };
  // Counts and rows for several assumed runs.
  struct Probes;

  // Returns the forms of one count from `begin` to `end` that have the rows of every probe.
  static std::vector<Form> FormsOf(const Probes& probes, const std::vector<int64_t>& rows,
                                   size_t begin, size_t end);
  static std::optional<Form> MultipleOf(const Probes& probes, const std::vector<int64_t>& rows,
                                        size_t count);
  static std::optional<Form> SumOf(const Probes& probes, const std::vector<int64_t>& rows);
  void FindEqualCounts(const Probes& probes);
  // Returns whether the rules refuse feeds without rows, or give other rows than the forms.
  bool HasLimits(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                 const FeedMetas& without_rows, size_t classes) const;
  static std::optional<int64_t> Evaluate(const Form& form, const std::vector<int64_t>& counts);
  static bool IsKnown(const Form& form, const std::vector<int64_t>& counts);

  const Kind kind_;
  std::vector<int64_t> capacity_;         // of each count
  std::vector<size_t> counts_of_groups_;  // how many counts each LoD has
  // Pairs of counts that are equal in every probe.
  std::vector<std::pair<size_t, size_t>> equal_counts_;
  std::vector<Form> forms_;
  // Other forms with the same rows in every probe, each with the place of the one in forms_.
  std::vector<std::pair<size_t, Form>> rivals_;
  std::vector<Varying> values_;
  bool has_limits_ = false;
};

// Returns the counts of a plan's feeds, all of which may vary, with as few of them in one class as
// the plan's ops allow: two counts share one if an op refuses the feeds when only one of them
// changes. A dense feed that can't change at all has no class.
CountClasses FindClasses(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods);

}  // namespace skiff
