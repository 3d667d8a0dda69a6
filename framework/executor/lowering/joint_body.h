// The joint body of a loop or branch: its block and the block of its gradient op, lowered as one
// plan. Internal to framework/executor.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "framework/executor/lowering/block_lowering.h"
#include "framework/executor/lowering/forward_values.h"
#include "framework/executor/lowering/loop_form.h"
#include "framework/executor/lowering/loop_links.h"
#include "framework/executor/lowering/loop_ops.h"
#include "framework/plan/plan.h"

namespace skiff {

// One iteration: the forward half (the instructions of the block), a loop_boundary, and the
// gradient half (the instructions of the gradient block); without a gradient op, the forward half
// alone. Links say how values enter and leave each half.
class JointBody {
 public:
  // Throws the Errors of BlockLowering's constructor. All arguments must outlive the object.
  JointBody(BlockLowering* outer, const LoopOps& ops, LoopForm* form);
  JointBody(const JointBody&) = delete;
  JointBody& operator=(const JointBody&) = delete;

  // Lowers both blocks and runs the passes for bodies. `outer` gets no instruction, only values of
  // the variables that the blocks read from the scope or from further out.
  //
  // Returns false if the block writes elements to an array that differ from the elements read
  // before, for example larger elements. Then the loop must be lowered anew, with another object.
  //
  // Throws an Error (kInvalidArgument) if a variable changes its shape or dtype from one iteration
  // to the next, or if a gradient that the op declares isn't made; (kUnimplemented) for the limits
  // listed in docs/loops.md; (kFailedPrecondition) if a pass has dropped the boundary; and, with
  // the place of the op, any Error of lowering an op of the blocks.
  bool Lower();

  const LoopOps& ops() const { return ops_; }
  const JointLinks& links() const { return links_; }
  const Plan& plan() const { return lowering_.plan(); }
  const BlockLowering& lowering() const { return lowering_; }
  BlockLowering& outer() { return outer_; }

  // The rest is for forms. "The half" is the half being lowered.

  BlockLowering& lowering() { return lowering_; }
  const TensorMeta& MetaOf(ValueId value) const { return plan()[value].meta; }
  const std::string& NameOf(const JointFeed& feed) const { return plan()[feed.value].name; }
  // Returns the meta that the forward variable of a gradient has in the body.
  TensorMeta ForwardMeta(const std::string& gradient);
  // Returns whether the name means an array of tensors in the block.
  bool IsArray(const std::string& name) const;

  // Adds a feed of the half. From now on `name` means the feed in the body. Returns its index.
  size_t AddFeed(LoopFeed::Kind kind, const std::string& name, TensorMeta meta, OuterInput input);
  // The same for an input that is the value of the variable `outer` at the gradient op; zeros for
  // @EMPTY@.
  size_t AddSeed(LoopFeed::Kind kind, const std::string& name, const TensorMeta& meta,
                 const std::string& outer);
  // Returns the index of the feed of one half, if there is one.
  std::optional<size_t> FindFeed(const HalfLinks& half, LoopFeed::Kind kind,
                                 const std::string& name) const;

  // Adds a fetch of the half that defines an outer variable; an empty name: none. The result may be
  // changed until the next call.
  JointFetch& AddFetch(LoopFetch::Kind kind, const std::string& defines, ValueId value);
  // Adds a fetch: `end` becomes the value of a feed of the half in the next iteration. Throws an
  // Error (kInvalidArgument) if their shapes or dtypes differ.
  void AddCarried(size_t feed, const std::string& defines, ValueId end);
  // Adds a fetch: `defines` is the sum of `end` over all iterations, the gradient of `of`.
  void AddSum(const std::string& defines, const std::string& of, ValueId end);

 private:
  ValueId Capture(const std::string& name);
  const JointFeed& FeedOf(ValueId value) const;
  KnownContents::Contents ContentsOfFeed(ValueId value, std::string* why) const;
  ValueId Owned(ValueId value);
  void LowerForward();
  void AddBoundary();
  void LowerGradient();
  void TieArrays();
  void AddGradientOp(const Block& block, size_t position);
  void CheckScopeReads(const Instruction& gradient) const;
  void RunPasses();
  bool PlaceValues(Plan* plan) const;

  BlockLowering& outer_;
  const LoopOps& ops_;
  LoopForm& form_;
  const LoweringInputs inputs_;
  BlockLowering lowering_;
  JointLinks links_;
  HalfLinks* half_ = &links_.forward;  // that is being lowered
  size_t first_value_of_half_ = 0;
  std::optional<ForwardValues> forward_values_;
  // The values that the forward block writes last to variables of the scope.
  std::map<std::string, ValueId> scope_values_at_end_;
};

}  // namespace skiff
