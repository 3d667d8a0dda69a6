// The rows of the values in the body of a loop, where only a run or an iteration tells them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/plan_rows.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"
#include "framework/tensor/tensor_array.h"

namespace skiff {

// All rows follow from *sources*: feeds of the body, and outputs of ops that set rows. The rows of
// other values are affine forms of the counts of the sources.
class LoopRows {
 public:
  // `varies`: by feed of the joint body, whether its rows may differ from run to run. Throws the
  // Errors of PlanRows. The loop must outlive the object.
  LoopRows(const OpRegistry& registry, const Loop& loop, const std::vector<bool>& varies);

  // Lets the values of each LoD group share one LoD.
  void Bind(ValueTensors* values);

  // Returns whether the value has other rows or another LoD than planned.
  bool Varies(ValueId value) const { return form_of_.contains(value); }
  // Returns whether the last Apply has told the rows of a value that varies.
  bool Knows(ValueId value) const { return by_form_[form_of_.at(value)] >= 0; }
  // Returns whether the instruction has a value whose rows vary.
  bool Varies(const Instruction& instruction) const;

  // Notes the rows and LoDs of the feeds, which are inputs of the loop's instruction.
  void NoteFeeds(const KernelContext& context);
  // Forgets the rows that earlier iterations have set.
  void StartIteration();
  // Notes the rows that the instruction, which sets rows, has set.
  void Note(const Instruction& instruction);
  // Gives all values the rows and LoDs that follow from the noted rows and LoDs. Throws an Error
  // (kInvalidArgument) if there are more rows than planned, or if counts differ that must be equal.
  void Apply();

  // Must come before an instruction of the body with values whose rows vary: a kernel that takes
  // fewer rows leaves it to the shape rules to refuse rows. Throws the Errors of the rules, and an
  // Error (kInvalidArgument) if a rule gives other rows than Apply has set.
  void CheckRules(size_t instruction);

  // Keep in an array, and restore, the rows and LoDs noted in an iteration.
  void Save(int64_t iteration, TensorArray* history) const;
  void Restore(int64_t iteration, const TensorArray& history);

  // Returns the body with the shapes, LoDs and contents that are known in this iteration before
  // `instruction`. Valid until the next Apply.
  const Plan& CurrentBody(size_t instruction);

 private:
  // A feed, which has the rows of an input of the loop, or an output of an op.
  struct Source {
    ValueId value;
    int input = -1;
    bool is_feed = false;
    bool is_known = false;
    int64_t rows = 0;
    const LoD* lod = nullptr;
  };

  void AddSources(const Loop& loop, const std::vector<bool>& varies);
  // Returns the place in the history for the rows of a source that an op sets. Both halves of a
  // loop have the same ops that set rows, but not the same feeds.
  int64_t PlaceInHistory(int64_t iteration, size_t source) const;
  [[noreturn]] void Refuse() const;
  // Returns for each instruction of the body whether its rules have agreed with the rows of the
  // last Apply.
  std::vector<bool>& Agreed();
  // Gives a copy of the body the rows and LoDs that are known.
  void GiveRows(Plan* current) const;
  static void CheckRule(const Plan& current, const Instruction& instruction);

  const OpRegistry& registry_;
  const Plan& body_;
  std::vector<Source> sources_;  // feeds first
  size_t feed_count_ = 0;
  Plan shapes_;  // the joint body, with the sources as feeds
  std::optional<CountClasses> classes_;
  std::optional<PlanLoDs> lods_;
  std::optional<PlanRows> rows_;
  std::map<ValueId, size_t> form_of_;  // of the values that vary
  std::set<ValueId> carried_;          // feeds that the body has memory for
  ValueTensors* values_ = nullptr;
  // Of the iteration.
  std::vector<int64_t> counts_;  // by class, then of the LoDs
  std::vector<int64_t> by_form_;
  std::vector<const LoD*> of_sources_;
  RunLoDs next_lods_;
  std::optional<Plan> current_body_;
  bool current_has_rows_ = false;  // of the last Apply
  size_t followed_ = 0;            // how many instructions current_body_ has the contents of
  // By everything that a shape rule may read: counts and offsets of LoDs.
  std::map<std::vector<int64_t>, std::vector<bool>> agreed_;
  size_t kept_ = 0;           // how many numbers the keys of agreed_ have
  std::vector<int64_t> key_;  // of the last Apply
  // The entry of agreed_ for the last Apply; nullptr: not looked for yet.
  std::vector<bool>* agreed_now_ = nullptr;
};

}  // namespace skiff
