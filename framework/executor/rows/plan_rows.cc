#include "framework/executor/rows/plan_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "framework/base/error.h"
#include "framework/executor/rows/shape_inference.h"

namespace skiff {
namespace {

// Returns where the value is made, for an Error.
std::string MakerOf(const Plan& plan, ValueId value) {
  const auto makes = [&](const Instruction& instruction) {
    return std::ranges::find(instruction.outputs, value) != instruction.outputs.end();
  };
  for (const Instruction& instruction : plan.instructions) {
    if (makes(instruction))
      return DescribeOp(*instruction.op, instruction.block, instruction.position);
    for (const Instruction& member : instruction.members) {
      if (makes(member)) return DescribeOp(*member.op, member.block, member.position);
    }
  }
  return StrCat("variable \"", plan[value].name, "\"");
}

// Returns the values that others find by their addresses, so that their rows can't vary.
std::set<ValueId> ContiguousValuesOf(const Plan& plan) {
  std::set<ValueId> values;
  for (const ContiguousValues& list : plan.contiguous) {
    values.insert(list.values.begin(), list.values.end());
  }
  return values;
}

// Finds the forms of rows: one for all values with the same rows in all probes and, if they are
// ragged, in the same LoD group.
class FormSearch {
 public:
  FormSearch(const PlanLoDs& lods, const RowProbes& probes)
      : lods_(lods), probes_(probes.counts()), counts_of_groups_(probes.counts_of_groups()) {
    size_t place = probes_.classes;
    for (const size_t counts : counts_of_groups_) {
      place += counts;
      rows_of_group_.push_back(counts == 0 ? std::nullopt : std::optional<size_t>(place - 1));
    }
  }

  // Returns the place of the form that the rows, by probe, have; nothing if there is none.
  std::optional<size_t> Find(ValueId value, const std::vector<int64_t>& rows) {
    // The rows of a ragged value are those of its own LoD, whatever other counts are equal.
    const std::optional<size_t> own = lods_.GroupOf(value);
    const std::optional<size_t> group = own ? own : lods_.ShapeGroupOf(value);
    const std::optional<size_t> of_group = group ? rows_of_group_[*group] : std::nullopt;
    const auto [known, is_new] = known_.emplace(Key(of_group, rows), forms_.size());
    if (!is_new) return known->second;
    std::vector<RowForm> found;
    if (of_group) found = FormsOfGroup(*group, *of_group, rows);
    if (found.empty() && !own) found = FormsOfAnyCount(rows);
    if (found.empty()) return std::nullopt;
    for (size_t i = 1; i < found.size(); ++i) rivals_.emplace_back(forms_.size(), found[i]);
    forms_.push_back(std::move(found.front()));
    return known->second;
  }

  std::vector<RowForm> TakeForms() { return std::move(forms_); }
  std::vector<std::pair<size_t, RowForm>> TakeRivals() { return std::move(rivals_); }

 private:
  using Key = std::pair<std::optional<size_t>, std::vector<int64_t>>;

  std::vector<RowForm> FormsOfGroup(size_t group, size_t place,
                                    const std::vector<int64_t>& rows) const {
    std::vector<RowForm> found = MultiplesOfCounts(probes_, rows, place, place + 1);
    if (!found.empty()) return found;
    // Of a rank table, those of the sequences.
    const size_t levels = counts_of_groups_[group] - 1;
    return MultiplesOfCounts(probes_, rows, place - levels, place);
  }

  std::vector<RowForm> FormsOfAnyCount(const std::vector<int64_t>& rows) const {
    std::vector<RowForm> found = MultiplesOfCounts(probes_, rows, 0, probes_.counts[0].size());
    std::optional<RowForm> sum = SumOfClasses(probes_, rows);
    if (sum) found.push_back(std::move(*sum));
    return found;
  }

  const PlanLoDs& lods_;
  const CountProbes& probes_;
  const std::vector<size_t>& counts_of_groups_;
  std::vector<std::optional<size_t>> rows_of_group_;  // where they are among the counts
  std::map<Key, size_t> known_;
  std::vector<RowForm> forms_;
  std::vector<std::pair<size_t, RowForm>> rivals_;
};

}  // namespace

PlanRows::PlanRows(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                   const CountClasses& classes, ServedCounts served)
    : served_(served) {
  const RowProbes probes(registry, plan, lods, classes, served);
  capacity_ = probes.counts().counts[0];
  counts_of_groups_ = probes.counts_of_groups();
  FindEqualCounts(probes.counts());
  FindForms(plan, lods, probes);
  has_limits_ = served == ServedCounts::kBody &&
                (probes.refuses_fewest() || HasLimits(registry, plan, lods, classes));
}

void PlanRows::FindForms(const Plan& plan, const PlanLoDs& lods, const RowProbes& probes) {
  const std::set<ValueId> contiguous = ContiguousValuesOf(plan);
  FormSearch search(lods, probes);
  for (const ValueId id : plan.ids()) {
    const RowVariation variation = probes.VariationOf(id);
    if (!variation.varies || plan[id].meta.is_array) continue;
    // Their storage has a fixed size, or others know where it lies.
    const bool may_vary =
        variation.fits && plan[id].storage != Storage::kScope && !contiguous.contains(id);
    const std::optional<size_t> form = may_vary ? search.Find(id, variation.rows) : std::nullopt;
    if (!form) {
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("the shape ", plan[id].meta.shape, " of \"", plan[id].name,
                         "\" or its LoD depends on the rows of ragged feeds, and not by an affine "
                         "form in its first dim"))
          .WithContext(MakerOf(plan, id));
    }
    values_.push_back({.value = id, .form = *form, .axis = variation.axis});
  }
  forms_ = search.TakeForms();
  rivals_ = search.TakeRivals();
}

bool PlanRows::HasLimits(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                         const CountClasses& classes) const {
  try {
    std::vector<int64_t> counts(classes.counts().size(), 0), rows;
    const ShapeInference inferred(registry, plan, lods, classes.Even(FeedsOf(plan), counts));
    if (!Evaluate(inferred.lods(), &counts, &rows)) return true;
    std::map<ValueId, Shape> expected;
    for (const auto& [value, form, axis] : values_) {
      Shape& shape = expected.emplace(value, plan[value].meta.shape).first->second;
      shape[axis] = rows[form];
    }
    for (const ValueId id : plan.ids()) {
      const auto found = expected.find(id);
      const Shape& shape = found == expected.end() ? plan[id].meta.shape : found->second;
      if (!plan[id].meta.is_array && inferred[id].shape != shape) return true;
    }
    return false;
  } catch (const Error&) {
    return true;
  }
}

void PlanRows::FindEqualCounts(const CountProbes& probes) {
  // By the values in all probes: the first count that has them.
  std::map<std::vector<int64_t>, size_t> first;
  for (size_t count = 0; count < capacity_.size(); ++count) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& probe : probes.counts) values.push_back(probe[count]);
    const auto [found, is_new] = first.emplace(std::move(values), count);
    if (!is_new) equal_counts_.emplace_back(found->second, count);
  }
}

bool PlanRows::IsServed(int64_t count, int64_t capacity) const {
  const int64_t least = served_ == ServedCounts::kBody ? 0 : 1;
  return count >= least && count <= capacity;
}

bool PlanRows::HasServedCounts(const std::vector<int64_t>& counts) const {
  // A LoD may have another number of levels than the plan's.
  if (counts.size() != capacity_.size()) return false;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != -1 && !IsServed(counts[i], capacity_[i])) return false;
  }
  return std::ranges::all_of(equal_counts_, [&](const auto& pair) {
    const int64_t first = counts[pair.first];
    const int64_t second = counts[pair.second];
    return first == second || first < 0 || second < 0;
  });
}

bool PlanRows::Evaluate(const RunLoDs& lods, std::vector<int64_t>* counts,
                        std::vector<int64_t>* rows) const {
  AppendCountsOfGroups(lods, counts_of_groups_, counts);
  rows->clear();
  if (!HasServedCounts(*counts)) return false;
  for (const RowForm& form : forms_) {
    rows->push_back(-1);
    if (!form.IsKnown(*counts)) continue;
    const std::optional<int64_t> found = form.Evaluate(*counts);
    if (!found || !IsServed(*found, form.capacity)) return false;
    rows->back() = *found;
  }
  return std::ranges::all_of(rivals_, [&](const auto& rival) {
    const auto& [form, other] = rival;
    const int64_t found = (*rows)[form];
    return found < 0 || !other.IsKnown(*counts) || other.Evaluate(*counts) == found;
  });
}

}  // namespace skiff
