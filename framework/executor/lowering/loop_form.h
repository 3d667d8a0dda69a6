// The differences between kinds of ops with a block: how variables enter and leave the block, and
// how often the block runs. Internal to framework/executor.
#pragma once

#include <cstdint>

#include "framework/plan/value_id.h"

namespace skiff {

class JointBody;

// How often a block runs, and in which order its iterations take parts and slots.
struct LoopRuns {
  int64_t iterations = -1;  // -1: only a run knows
  ValueId condition = {};   // of the outer plan, one bool: the block runs once if it is true
  // Whether the forward half counts its iterations for the gradient half.
  bool is_counted = false;
  // By half, whether it goes from the last part to the first one.
  bool descending = false;
  bool gradient_descending = false;
};

// A kind of op with a block. There is an object for each op that is lowered. JointBody::Lower calls
// the methods that add links, AddFeeds to AddGradients, in this order. The methods throw an Error
// (kInvalidArgument or kUnimplemented) for an op that doesn't fit its block.
class LoopForm {
 public:
  LoopForm() = default;
  LoopForm(const LoopForm&) = delete;
  LoopForm& operator=(const LoopForm&) = delete;
  virtual ~LoopForm() = default;

  // Adds the feeds of the forward half, except the variables that the block only reads: such a
  // variable becomes a feed when an op reads it.
  virtual void AddFeeds(JointBody* body) = 0;
  // Adds the fetches of the forward half, whose ops are lowered.
  virtual void AddFetches(JointBody* body) = 0;
  // Adds the feeds of the gradient half: where its gradients begin. Its block has been entered.
  virtual void AddSeeds(JointBody* body) = 0;
  // Adds the fetches of the gradient half, whose ops are lowered.
  virtual void AddGradients(JointBody* body) = 0;

  // Returns whether the block runs at most once. Such a block is on the CPU, and its gradient half
  // finds the variables of the scope as after the block.
  virtual bool RunsAtMostOnce() const { return false; }
  // Returns how many iterations have a slot in a stack; -1: only a run knows. Call it after
  // AddFeeds.
  virtual int64_t SlotCount() const = 0;
  // Returns the feed that says whether one more iteration runs, or none. Call it after AddFetches.
  virtual ValueId Condition(const JointBody& body) const;
  // Returns how often the block runs, and reads the condition in the outer block. Call it when the
  // body is lowered. Throws an Error if a condition isn't a single bool (kInvalidArgument), or if
  // the condition of a loop is a variable of the scope (kUnimplemented).
  virtual LoopRuns Runs(JointBody* body) const = 0;
};

inline ValueId LoopForm::Condition(const JointBody& /*body*/) const { return {}; }

}  // namespace skiff
