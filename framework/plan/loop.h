// The body of a loop or a branch: the plan of one iteration, and how values enter and leave it.
//
// The instruction that runs the body (InstructionKind::kLoop) belongs to another plan, the *outer*
// one. Its inputs and outputs are values of the outer plan; the links below name them by their
// indices among the inputs and outputs. Where a program trains, a loop is two instructions: one
// runs the forward half of the body, one the gradient half, the last iteration first. Both halves
// have the same values; values of the forward half that the gradient half reads are *stacked*: each
// iteration has a slot in a stack, which is a value of the outer plan. If nobody knows the number
// of slots before a run, the stack is an array (TensorArray) with an element for each slot. A view
// of a feed that is the same in all iterations lies in the feed instead, in both halves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// How a value enters the body. It is a feed of the body's plan.
struct LoopFeed {
  enum class Kind {
    kInvariant,  // the input, the same in each iteration
    kPart,       // the input, a stack, without dim 0: in iteration t its part t
    kCarried,    // at first the input (zeros if input = -1), then what a fetch left (kCarried)
  };
  Kind kind = Kind::kInvariant;
  ValueId value;  // of the body
  int input = -1;
  // Of a carried value that the gradient half reads: the output that stacks the value as it is when
  // each iteration begins, and at last as the loop leaves it. -1: none.
  int stack = -1;
};

// How a value leaves the body. It is a fetch of the body's plan.
struct LoopFetch {
  enum class Kind {
    kCarried,  // becomes the value of the feed in the next iteration; the output is the last one
    kPart,     // in iteration t the part t of the output, which has one more dim, dim 0
    kLast,     // the output is that of the last iteration; `input` (zeros if -1) if there is none
    kSum,      // the output is the sum over all iterations, in the order in which they run
  };
  Kind kind = Kind::kLast;
  ValueId value;    // of the body
  int output = -1;  // -1: nobody outside wants it
  int input = -1;
  int feed = -1;  // of kCarried: its index in Loop::feeds
  int like = -1;  // an input with the shape and LoD of the output, whatever the rows of the run
};

// A value that the forward half makes and the gradient half reads (Storage::kStack). `index`: of
// the stack among the outputs of the forward half, and the inputs of the gradient half.
struct LoopStash {
  ValueId value;
  int index = -1;
  // The slot of iteration t is slot t + shift: 1 if the carried value becomes this value, which
  // then lies in the carried value's stack. The gradient half may overwrite the slot in iteration
  // t: it has run iteration t + 1, which reads the slot as the carried value, before.
  int shift = 0;
};

// A variable of the scope that the body reads or writes; `index` is its value among the inputs or
// the outputs of the instruction. -1: an array of the body's own, empty when an iteration begins.
struct LoopScopeValue {
  ValueId value;
  bool is_output = false;
  int index = -1;
};

struct Loop {
  Plan body;  // its feeds and fetches are those of the links, in their order
  std::vector<LoopFeed> feeds;
  std::vector<LoopFetch> fetches;
  std::vector<LoopStash> stashes;
  std::vector<LoopScopeValue> scope_values;

  // How often the body runs; -1: only a run knows, by one of the following.
  int64_t iterations = -1;
  int condition_feed = -1;   // runs as long as this feed, a single bool, is true
  int condition_input = -1;  // runs once if this input, a single bool, is true
  int count_input = -1;      // this input, a single int64, says how often the body runs
  int count_output = -1;     // receives how often it has run
  // Where the rows of values differ from iteration to iteration, or may differ from run to run: the
  // body with both halves, and for each of its feeds the index among the inputs of the instruction,
  // which may be read for its rows only. -1: there is none, so its rows are the planned ones;
  // kOnlyTheOtherHalfKnows: it is a feed of the other half.
  static constexpr int kOnlyTheOtherHalfKnows = -2;
  std::shared_ptr<const Plan> joint_body;
  std::vector<int> joint_body_inputs;
  // The output of the forward half, input of the gradient half, that keeps the rows and LoDs that
  // ops of the body have set (OpDef::sets_rows), by iteration. -1: none.
  int history = -1;
  // By condition_feed: one more is an Error.
  int64_t max_iterations = 0;
  bool is_gradient = false;  // undoes the iterations of the forward half, the last one first
  bool descending = false;   // runs from the last part of stacks to the first
};

// Returns whether the instruction stands between the two halves of a body that passes see as one
// plan. All iterations of the instructions before it run before any instruction after it.
bool IsLoopBoundary(const Instruction& instruction);

// Returns the bytes from one slot of a stack of these values to the next.
int64_t StackSlotBytes(const PlanValue& value);

}  // namespace skiff
