#include "framework/executor/lowering/cut_loop.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "framework/analysis/aliasing.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Calls use(value, reads_data) for each value that an instruction has.
template <typename Use>
void ForEachInput(const std::vector<Instruction>& instructions, const Use& use) {
  for (const Instruction& instruction : instructions) {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (instruction.inputs[i]) use(instruction.inputs[i], instruction.reads_data[i]);
    }
    // Members of a fused instruction read values for their shapes that its inputs lack.
    for (const Instruction& member : instruction.members) {
      for (const ValueId input : member.inputs) {
        if (input) use(input, false);
      }
    }
  }
}

class LoopCut {
 public:
  LoopCut(Plan joint, const JointLinks& links) : links_(links), plan_(std::move(joint)) {
    for (const HalfLinks* half : {&links_.forward, &links_.gradient}) {
      for (const JointFeed& feed : half->feeds) {
        if (feed.kind == LoopFeed::Kind::kInvariant) invariants_.insert(feed.value);
      }
    }
  }

  LoopHalves Run() {
    TakeInstructions();
    ShareViewsOfInvariants(forward_);
    ShareViewsOfInvariants(gradient_);
    FindStashes();
    LoopHalves halves;
    halves.forward = MakeForward();
    if (has_gradient_) halves.gradient = MakeGradient();
    for (const ValueId value : stashes_) halves.stashes.push_back({value, {}});
    ShareStacks(halves.forward, &halves.stashes);
    return halves;
  }

 private:
  void TakeInstructions() {
    std::vector<Instruction>& all = plan_.instructions;
    const auto boundary = std::ranges::find_if(all, IsLoopBoundary);
    has_gradient_ = boundary != all.end();
    forward_.assign(std::make_move_iterator(all.begin()), std::make_move_iterator(boundary));
    if (has_gradient_) {
      gradient_.assign(std::make_move_iterator(boundary + 1), std::make_move_iterator(all.end()));
    }
    all.clear();
    plan_.feeds.clear();
    plan_.fetches.clear();
  }

  // Puts views of what is the same in all iterations into its storage, unless something else writes
  // there, too. No iteration then copies it, and no stack holds it for the gradient half.
  void ShareViewsOfInvariants(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) {
      for (const auto& [from, to] : ViewPairs(plan_, instruction)) {
        const ValueId shown = plan_.StorageOf(instruction.inputs[static_cast<size_t>(from)]);
        const ValueId view = instruction.outputs[static_cast<size_t>(to)];
        const PlanValue& value = plan_[view];
        if (!invariants_.contains(shown) || value.alias_of || value.storage != Storage::kArena ||
            value.is_exclusive || Writers(view) > 1) {
          continue;
        }
        for (const ValueId id : plan_.ids()) {
          if (plan_[id].alias_of == view) plan_[id].alias_of = shown;
        }
        plan_[view].alias_of = shown;
      }
    }
  }

  // Returns how many outputs of the joint body lie in a storage without being views of it.
  int64_t Writers(ValueId root) const {
    int64_t writers = 0;
    for (const auto* instructions : {&forward_, &gradient_}) {
      for (const Instruction& instruction : *instructions) {
        const InputOutputPairs views = ViewPairs(plan_, instruction);
        for (size_t i = 0; i < instruction.outputs.size(); ++i) {
          const ValueId output = instruction.outputs[i];
          if (!output || plan_.StorageOf(output) != root) continue;
          const bool is_view = std::ranges::any_of(views, [&](const auto& pair) {
            return pair.second == static_cast<int>(i) &&
                   plan_.StorageOf(instruction.inputs[static_cast<size_t>(pair.first)]) == root;
          });
          if (!is_view) ++writers;
        }
      }
    }
    return writers;
  }

  // Returns the storages that the forward half fills.
  std::set<ValueId> FilledStorages() const {
    std::set<ValueId> filled;
    for (const Instruction& instruction : forward_) {
      for (const ValueId output : instruction.outputs) {
        if (!output) continue;
        const ValueId root = plan_.StorageOf(output);
        if (!invariants_.contains(root)) filled.insert(root);
      }
    }
    for (const JointFeed& feed : links_.forward.feeds) {
      if (feed.kind == LoopFeed::Kind::kCarried) filled.insert(feed.value);
    }
    return filled;
  }

  // Finds the storages that the forward half fills and the gradient half reads.
  void FindStashes() {
    const std::set<ValueId> filled = FilledStorages();
    std::set<ValueId> seen;
    const auto look = [&](ValueId value, bool reads_data) {
      const ValueId root = plan_.StorageOf(value);
      if (!reads_data || !filled.contains(root) || !seen.insert(root).second) return;
      if (plan_[root].storage == Storage::kScope) return;
      stashes_.push_back(root);
    };
    ForEachInput(gradient_, look);
    // A pass may have found that the forward half makes what the gradient half would hand out.
    for (const JointFetch& fetch : links_.gradient.fetches) look(fetch.value, true);
    for (const ValueId root : stashes_) {
      if (plan_[root].storage == Storage::kArena) plan_[root].storage = Storage::kStack;
    }
    std::ranges::stable_partition(stashes_, [&](ValueId root) { return IsFeed(root); });
  }

  bool IsFeed(ValueId value) const { return plan_[value].storage == Storage::kFeed; }
  bool IsStash(ValueId value) const { return std::ranges::count(stashes_, value) > 0; }

  HalfBody MakeForward() {
    HalfBody half = MakeHalf(std::move(forward_));
    const std::map<ValueId, bool> uses = UsesOf(half, links_.forward.fetches);
    for (const JointFeed& feed : links_.forward.feeds) {
      const bool is_condition = feed.value == links_.condition;
      if (is_condition) half.condition_feed = static_cast<int>(half.feeds.size());
      AddFeed(feed, uses, is_condition, IsStash(feed.value), &half);
    }
    AddFetches(links_.forward, &half);
    return half;
  }

  HalfBody MakeGradient() {
    HalfBody half = MakeHalf(std::move(gradient_));
    const std::map<ValueId, bool> uses = UsesOf(half, links_.gradient.fetches);
    for (const JointFeed& feed : links_.forward.feeds) {
      if (feed.kind != LoopFeed::Kind::kCarried) AddFeed(feed, uses, false, false, &half);
    }
    for (const JointFeed& feed : links_.gradient.feeds) AddFeed(feed, uses, false, false, &half);
    AddFetches(links_.gradient, &half);
    return half;
  }

  // Returns a half without links.
  HalfBody MakeHalf(std::vector<Instruction> instructions) const {
    HalfBody half{.plan = plan_};
    half.plan.instructions = std::move(instructions);
    std::set<ValueId> seen;
    ForEachInput(half.plan.instructions, [&](ValueId value, bool) {
      if (plan_[value].storage == Storage::kScope && seen.insert(value).second) {
        half.scope_reads.push_back(value);
      }
    });
    for (const Instruction& instruction : half.plan.instructions) {
      for (const ValueId output : instruction.outputs) {
        if (output && plan_[output].storage == Storage::kScope) half.scope_writes.push_back(output);
      }
    }
    return half;
  }

  // Returns the values that a half uses, and whether it reads their data.
  std::map<ValueId, bool> UsesOf(const HalfBody& half,
                                 const std::vector<JointFetch>& fetches) const {
    std::map<ValueId, bool> uses;
    ForEachInput(half.plan.instructions, [&](ValueId value, bool reads_data) {
      uses[value] = uses[value] || reads_data;
      // A view of a feed.
      const ValueId root = plan_.StorageOf(value);
      if (root != value && invariants_.contains(root)) uses[root] = uses[root] || reads_data;
    });
    for (const JointFetch& fetch : fetches) {
      const ValueId root = plan_.StorageOf(fetch.value);
      if (invariants_.contains(root)) uses[root] = true;
    }
    return uses;
  }

  // Adds a feed if the half needs it.
  void AddFeed(const JointFeed& feed, const std::map<ValueId, bool>& uses, bool is_condition,
               bool is_stacked, HalfBody* half) const {
    // The LoDs of all other values follow from those of the feeds.
    const bool has_lod = CountedLoD(plan_[feed.value].meta) != nullptr;
    const auto use = uses.find(feed.value);
    const bool is_used = use != uses.end();
    if (!is_used && !is_condition && !is_stacked && !has_lod) return;
    const bool reads_data =
        is_condition || feed.kind == LoopFeed::Kind::kCarried || (is_used && use->second);
    half->feeds.push_back({.link = feed, .reads_data = reads_data});
    half->plan.feeds.push_back(feed.value);
  }

  static void AddFetches(const HalfLinks& links, HalfBody* half) {
    for (const JointFetch& fetch : links.fetches) {
      HalfFetch of_half{.link = fetch};
      if (fetch.kind == LoopFetch::Kind::kCarried) {
        const JointFeed& feed = links.feeds[static_cast<size_t>(fetch.feed)];
        const auto at = std::ranges::find(half->plan.feeds, feed.value);
        of_half.link.feed = static_cast<int>(at - half->plan.feeds.begin());
        // No iteration reads the value that the iteration before has left.
        if (at == half->plan.feeds.end()) {
          if (fetch.defines.empty()) continue;
          of_half.link.kind = LoopFetch::Kind::kLast;
          of_half.link.feed = -1;
          of_half.initial = feed.input;
        }
      }
      half->plan.fetches.push_back(fetch.value);
      half->fetches.push_back(std::move(of_half));
    }
  }

  // Finds the stashes that lie in the stacks of carried values.
  void ShareStacks(const HalfBody& forward, std::vector<Stash>* stashes) const {
    // A stack that grows may move while the carried value still lies in it.
    if (links_.slots < 0) return;
    std::set<ValueId> taken;
    for (Stash& stash : *stashes) {
      if (IsFeed(stash.value)) continue;
      const ValueId carried = CarriedThatBecomes(stash.value, forward);
      if (carried && taken.insert(carried).second) stash.next_of = carried;
    }
  }

  // Returns the stacked carried value that becomes this stash when an iteration ends, or none.
  ValueId CarriedThatBecomes(ValueId root, const HalfBody& forward) const {
    for (const HalfFetch& fetch : forward.fetches) {
      if (fetch.link.kind != LoopFetch::Kind::kCarried) continue;
      if (plan_.StorageOf(fetch.link.value) != root) continue;
      const ValueId carried = forward.feeds[static_cast<size_t>(fetch.link.feed)].link.value;
      const bool fits = StackSlotBytes(plan_[carried]) == StackSlotBytes(plan_[root]);
      if (IsStash(carried) && fits) return carried;
    }
    return {};
  }

  const JointLinks& links_;
  Plan plan_;  // without instructions, once they are taken
  std::set<ValueId> invariants_;
  bool has_gradient_ = false;
  std::vector<Instruction> forward_;
  std::vector<Instruction> gradient_;
  std::vector<ValueId> stashes_;
};

}  // namespace

LoopHalves CutLoop(Plan joint, const JointLinks& links) {
  return LoopCut(std::move(joint), links).Run();
}

}  // namespace skiff
