// The shapes, LoDs and known contents of a plan's values for other feeds than those of the plan.
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
  // Runs the shape rules of the plan, whose feeds have other shapes and LoDs. Layouts stay those of
  // the plan. `reached` counts the instructions whose rules have agreed so far; nullptr: nobody
  // wants to know. Throws what the rules throw, and an Error (kUnimplemented) if an op reads the
  // rows of a value before one makes it, or if what a loop hands on or leaves has rows that vary;
  // all name the op. Throws what PlanLoDs::Derive throws. Plan and registry must outlive it.
  ShapeInference(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                 const FeedMetas& feeds, size_t* reached = nullptr);

  const TensorMeta& operator[](ValueId value) const { return metas_[value]; }
  // Returns the LoDs by group.
  const RunLoDs& lods() const { return run_; }

 private:
  // Sets what is known of a value before it is made. An op that needs only its shape or LoD may run
  // earlier, and a pass may have dropped the op that makes it.
  void AssumeUnmade(ValueId id, const PlanLoDs& lods);
  void Infer(const Instruction& instruction);
  void InferCopy(const Instruction& instruction);
  void InferOp(const Instruction& instruction);
  std::vector<TensorMeta> InputsOf(const Instruction& instruction) const;
  void InferLoop(const Instruction& instruction);
  // Returns whether a value of the plan has another shape than planned.
  bool Varies(ValueId value) const;
  void CheckHandedOn(const Instruction& loop) const;
  // Returns the shapes in a forward half whose feeds have the shapes of the moment.
  ShapeInference InsideOf(const Instruction& loop) const;
  void TakeRows(const TensorMeta& from, ValueId value);

  const OpRegistry& registry_;
  const Plan& plan_;
  RunLoDs run_;
  ValueTable<TensorMeta> metas_;
  std::set<ValueId> unknown_;  // not made yet, without a LoD
};

}  // namespace skiff
