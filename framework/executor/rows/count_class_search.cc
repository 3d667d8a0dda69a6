#include "framework/executor/rows/count_class_search.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/rows/shape_inference.h"

namespace skiff {
namespace {

// Tries which counts may change alone.
class ClassSearch {
 public:
  ClassSearch(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods)
      : registry_(registry), plan_(plan), lods_(lods), feeds_(FeedsOf(plan)) {
    for (const auto& [name, meta] : feeds_) {
      std::vector<int64_t> counts;
      if (const LoDGroup* lod = CountedLoD(meta)) {
        AppendCounts(lod->offsets, &counts);
      } else {
        counts = {meta.shape[0]};
      }
      std::vector<size_t>& classes = classes_.emplace_back();
      for (const int64_t count : counts) {
        classes.push_back(counts_.size());
        class_of_.push_back(counts_.size());
        counts_.push_back(count);
      }
    }
  }

  CountClasses Run() {
    // Pairs first: a group is found by leaving out one class after the other, and two that an op
    // wants to be equal can only be left out together.
    bool is_any = true;
    while (is_any) {
      for (size_t count = 0; count < counts_.size(); ++count) {
        while (IsStuck(count) && MergeWithOne(count)) {
        }
      }
      is_any = false;
      for (size_t count = 0; count < counts_.size() && !is_any; ++count) {
        is_any = IsStuck(count) && MergeWithSeveral(count);
      }
    }
    FindFixed();
    return Result();
  }

 private:
  // Returns whether this count stands for a class that can't change alone.
  bool IsStuck(size_t count) const {
    return class_of_[count] == count && !Agrees(Reached({count}));
  }

  bool Agrees(size_t reached) const { return reached > plan_.instructions.size(); }

  // Returns the classes that one may be tied to.
  std::vector<size_t> OthersThan(size_t changed) const {
    std::vector<size_t> others;
    for (size_t other = 0; other < counts_.size(); ++other) {
      const bool may_be_tied =
          class_of_[other] == other && other != changed && counts_[other] == counts_[changed];
      if (may_be_tied) others.push_back(other);
    }
    return others;
  }

  // Merges a class that can't change alone with another, such that more ops agree. Returns false if
  // there is none.
  bool MergeWithOne(size_t changed) {
    const size_t before = Reached({changed});
    for (const size_t other : OthersThan(changed)) {
      if (Reached({changed, other}) <= before) continue;
      Merge({changed, other});
      return true;
    }
    return false;
  }

  // Merges a class that can't change alone with several, such that more ops agree and none of them
  // can be left out: one op may want them all to be equal. Returns false if there are none.
  bool MergeWithSeveral(size_t changed) {
    const size_t before = Reached({changed});
    const auto helps = [&](const std::set<size_t>& merged) { return Reached(merged) > before; };
    const std::vector<size_t> others = OthersThan(changed);
    std::set<size_t> merged(others.begin(), others.end());
    merged.insert(changed);
    if (!helps(merged)) return false;
    for (const size_t other : others) {
      merged.erase(other);
      if (!helps(merged)) merged.insert(other);
    }
    Merge(merged);
    return true;
  }

  void Merge(const std::set<size_t>& merged) {
    for (size_t& of_count : class_of_) {
      if (merged.contains(of_count)) of_count = *merged.begin();
    }
  }

  // Dense feeds whose rows can't change, as they meet fixed ones, don't count.
  void FindFixed() {
    for (size_t feed = 0; feed < feeds_.size(); ++feed) {
      if (CountedLoD(feeds_[feed].second) != nullptr) continue;
      const size_t found = class_of_[classes_[feed].back()];
      if (!Agrees(Reached({found}))) fixed_.insert(feed);
    }
  }

  // Returns how many rules agree if the counts of these classes change: one more than there are
  // instructions if all do.
  size_t Reached(const std::set<size_t>& changed) const {
    std::vector<int64_t> counts = counts_;
    for (size_t i = 0; i < counts.size(); ++i) {
      // More than 1, so that a dim that was 1 doesn't fit by chance.
      if (changed.contains(class_of_[i])) counts[i] += 2;
    }
    const CountClasses classes(classes_, counts_);
    const FeedMetas feeds = classes.Even(feeds_, counts);
    size_t reached = 0;
    try {
      const ShapeInference inference(registry_, plan_, lods_, feeds, &reached);
      return reached + 1;
    } catch (const Error&) {
      return reached;
    }
  }

  CountClasses Result() const {
    std::vector<int64_t> counts;
    std::map<size_t, size_t> numbers;
    std::vector<std::vector<size_t>> classes = classes_;
    for (size_t feed = 0; feed < classes.size(); ++feed) {
      auto& of_feed = classes[feed];
      if (fixed_.contains(feed)) of_feed.clear();
      for (size_t& count : of_feed) {
        const auto [number, is_new] = numbers.emplace(class_of_[count], counts.size());
        if (is_new) counts.push_back(counts_[count]);
        count = number->second;
      }
    }
    return {std::move(classes), std::move(counts)};
  }

  const OpRegistry& registry_;
  const Plan& plan_;
  const PlanLoDs& lods_;
  const FeedMetas feeds_;
  std::vector<std::vector<size_t>> classes_;  // by feed: the places of its counts
  std::vector<int64_t> counts_;
  std::vector<size_t> class_of_;  // by count: the first count of its class
  std::set<size_t> fixed_;        // feeds
};

}  // namespace

CountClasses FindClasses(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods) {
  return ClassSearch(registry, plan, lods).Run();
}

}  // namespace skiff
