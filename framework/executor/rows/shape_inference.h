// The shapes, LoDs and known contents of a plan's values for other feeds than the plan's.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the feeds of a plan.
FeedMetas FeedsOf(const Plan& plan);

class ShapeInference {
 public:
  // Runs the shape rules of the plan, whose feeds have other shapes and LoDs. Layouts stay the
  // plan's. `reached`, unless nullptr, counts the instructions whose rules have agreed so far.
  // Throws the Errors of the rules, and an Error (kUnimplemented) if an op reads the rows of a
  // value that no op has made yet, or if the rows of a loop's result, or of a value handed from
  // iteration to iteration, vary in a way that can't be inferred; all name the op. Throws the
  // Errors of PlanLoDs::Derive. Plan and registry must outlive the object.
  ShapeInference(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                 const FeedMetas& feeds, size_t* reached = nullptr);

  const TensorMeta& operator[](ValueId value) const { return metas_[value]; }
  // Returns the LoDs by group.
  const RunLoDs& lods() const { return run_; }

 private:
  // Sets the shape and LoD of a value as far as they are known before an op makes the value. An op
  // that needs only the shape or LoD may come earlier, and a pass may have dropped the op that
  // makes the value.
  void AssumeUnmade(ValueId id, const PlanLoDs& lods);
  void Infer(const Instruction& instruction);
  void InferCopy(const Instruction& instruction);
  void InferOp(const Instruction& instruction);
  std::vector<TensorMeta> InputsOf(const Instruction& instruction) const;
  void InferLoop(const Instruction& instruction);
  // Returns whether a value of the plan has another shape than planned.
  bool Varies(ValueId value) const;
  void CheckHandedOn(const Instruction& loop) const;
  // Returns the shapes in the forward half of a loop for the inferred shapes of its inputs.
  ShapeInference InsideOf(const Instruction& loop) const;
  void TakeRows(const TensorMeta& from, ValueId value);

  const OpRegistry& registry_;
  const Plan& plan_;
  RunLoDs run_;
  ValueTable<TensorMeta> metas_;
  std::set<ValueId> unknown_;  // not made yet, without a LoD
};

}  // namespace skiff
