#include "framework/executor/rows/row_probes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/rows/known_contents.h"

namespace skiff {
namespace {

struct AssumedRun {
  // What it means if an op refuses the run.
  enum class Refusal { kError, kLimit, kIgnored };

  FeedMetas feeds;
  std::vector<int64_t> counts;  // of the feeds, by class
  Refusal refusal = Refusal::kError;
};

// Returns the capacity of the plan.
std::vector<int64_t> CapacityOf(const CountClasses& classes, ServedCounts served) {
  return served == ServedCounts::kBody ? classes.counts() : classes.Capacity();
}

// The first run is the plan itself. Then, with even LoDs: the same counts, each class with fewer in
// turn, all with fewer, all with the fewest that the plan serves: a shape rule may clamp. A body,
// whose counts may be small, is tried with more instead of fewer. Last, unless an op refuses that,
// the same counts with LoDs that differ from feed to feed: most counts that only happen to be equal
// differ there. PlanRows::Evaluate compares the rest in each run.
std::vector<AssumedRun> AssumedRuns(const Plan& plan, const CountClasses& classes,
                                    ServedCounts served, int64_t change) {
  const bool is_body = served == ServedCounts::kBody;
  const FeedMetas feeds = FeedsOf(plan);
  const std::vector<int64_t> capacity = CapacityOf(classes, served);
  std::vector<AssumedRun> runs = {{.feeds = feeds, .counts = capacity}};
  const auto assume_even = [&](const std::vector<int64_t>& counts) -> AssumedRun& {
    runs.push_back({.feeds = classes.Even(feeds, counts), .counts = counts});
    return runs.back();
  };
  assume_even(capacity);
  std::vector<int64_t> all_other = capacity;
  for (size_t i = 0; i < capacity.size(); ++i) {
    std::vector<int64_t> other = capacity;
    other[i] += change;
    all_other[i] += change * (2 + static_cast<int64_t>(i % 4));
    assume_even(other);
  }
  assume_even(all_other);
  std::vector<int64_t> fewest;
  for (const int64_t count : capacity) fewest.push_back(is_body ? 1 : LeastFor(count));
  // An iteration with the fewest rows may never come.
  if (AssumedRun& run = assume_even(fewest); is_body) run.refusal = AssumedRun::Refusal::kLimit;
  // Some ops want feeds with equal LoDs.
  runs.push_back({.feeds = classes.Uneven(feeds, capacity),
                  .counts = capacity,
                  .refusal = AssumedRun::Refusal::kIgnored});
  return runs;
}

bool HaveEqualContents(const TensorMeta& a, const TensorMeta& b) {
  if (a.contents == nullptr || b.contents == nullptr) return a.contents == b.contents;
  return HaveSameElements(*a.contents, *b.contents);
}

}  // namespace

void AppendCountsOfGroups(const RunLoDs& lods, const std::vector<size_t>& planned,
                          std::vector<int64_t>* counts) {
  for (size_t i = 0; i < lods.of_groups.size(); ++i) {
    const LoD& lod = lods.of_groups[i];
    if (IsUnknown(lod)) {
      counts->resize(counts->size() + planned[i], -1);
    } else if (!lod.empty()) {
      AppendCounts(lod, counts);
    }
  }
}

RowProbes::RowProbes(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                     const CountClasses& classes, ServedCounts served)
    : plan_(plan), lods_(lods) {
  const bool is_body = served == ServedCounts::kBody;
  probes_.classes = classes.counts().size();
  probes_.change = is_body ? 1 : -1;
  for (AssumedRun& run : AssumedRuns(plan, classes, served, probes_.change)) {
    try {
      Add(ShapeInference(registry, plan, lods, run.feeds), std::move(run.counts));
    } catch (const Error& error) {
      refuses_fewest_ = refuses_fewest_ || run.refusal == AssumedRun::Refusal::kLimit;
      if (run.refusal != AssumedRun::Refusal::kError) continue;
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("no plan for all counts ", is_body ? "up" : "that round up", " to (",
                         Join(CapacityOf(classes, served), ", "),
                         "): an op refuses some of them: ", error.what()));
    }
  }
  CheckGivenAttributes();
}

void RowProbes::Add(ShapeInference inferred, std::vector<int64_t> counts) {
  if (inferred_.empty()) {
    for (const LoD& lod : inferred.lods().of_groups) {
      counts_of_groups_.push_back(lod.empty() ? 0 : lod.size() + 1);
    }
  }
  AppendCountsOfGroups(inferred.lods(), counts_of_groups_, &counts);
  probes_.counts.push_back(std::move(counts));
  inferred_.push_back(std::move(inferred));
}

void RowProbes::CheckGivenAttributes() const {
  for (const Instruction& instruction : plan_.instructions) {
    if (instruction.kind != InstructionKind::kOp) continue;
    size_t i = 0;
    for (const SlotDef& slot : instruction.def->inputs) {
      for (const std::string& name : instruction.op->Input(slot.name)) {
        const ValueId value = instruction.inputs[i++];
        if (slot.attribute.empty() || slot.for_shape || !value) continue;
        const bool varies = std::ranges::any_of(inferred_, [&](const ShapeInference& other) {
          return !HaveEqualContents(other[value], inferred_[0][value]);
        });
        if (!varies) continue;
        throw Error(ErrorCode::kUnimplemented,
                    StrCat("input \"", slot.name, "\", variable \"", name,
                           "\", depends on rows that vary, and the kernel is prepared for \"",
                           slot.attribute, "\""))
            .WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
      }
    }
  }
}

bool RowProbes::KnowsLoD(ValueId value) const {
  return std::ranges::all_of(inferred_, [&](const ShapeInference& probe) {
    const LoD* lod = lods_.In(probe.lods(), value);
    const auto& made = probe[value].lod;
    return lod == nullptr || made == nullptr || made->offsets == *lod;
  });
}

RowVariation RowProbes::VariationOf(ValueId value) const {
  const Shape& planned = plan_[value].meta.shape;
  RowVariation variation{.axis = planned.rank() > 1 && planned[0] == 0 ? 1 : 0};
  variation.fits = inferred_[0][value].shape == planned && KnowsLoD(value);
  variation.varies = !variation.fits;
  for (const ShapeInference& probe : inferred_) {
    const Shape& shape = probe[value].shape;
    variation.varies = variation.varies || shape != planned;
    variation.fits = variation.fits && DifferInRowsAlone(shape, planned, variation.axis);
    variation.rows.push_back(shape.rank() <= variation.axis ? 1 : shape[variation.axis]);
  }
  return variation;
}

}  // namespace skiff
