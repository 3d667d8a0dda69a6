// Lowers the ops of a block: turns names into values. Internal to framework/executor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/executor/lowering/block_arrays.h"
#include "framework/executor/lowering/lowering_inputs.h"
#include "framework/executor/rows/known_contents.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Walks ops in order and keeps, for each name, the value that a read of it sees now. Each write
// makes another value. So the plan is in SSA form, and no later analysis has to compare names,
// except for scope variables, whose storage is shared by all their values.
class BlockLowering {
 public:
  // Finds a variable that the block doesn't define, in the blocks around it. Returns none if there
  // is no value.
  using Capture = std::function<ValueId(const std::string& name)>;

  // All arguments must outlive the lowering. `capture` is empty for the root block.
  BlockLowering(const LoweringInputs& inputs, const Block& block, Capture capture = {});

  const LoweringInputs& inputs() const { return inputs_; }
  const Block& block() const { return *block_; }
  Plan& plan() { return plan_; }
  const Plan& plan() const { return plan_; }
  // Lowers ops of the gradient block from now on. Reads see the values that the forward block has
  // left.
  void EnterGradientBlock(const Block& block) { block_ = &block; }
  // Returns the lowered blocks: the block of the constructor, then the gradient block.
  std::vector<const Block*> blocks() const;
  // Makes the array `name` in the block mean the array `outer` outside.
  void TieArray(const std::string& name, const std::string& outer) { arrays_.Tie(name, outer); }
  // Returns whether the rows of a value, or of the elements of an array, may differ from run to run
  // or from iteration to iteration.
  bool RowsVary(ValueId value) const;
  void MarkVarying(ValueId value) { varying_.insert(value); }
  // Returns whether the elements of all arrays are as at the block's first reads.
  bool ArraysAreAsRead() const { return arrays_.AreAsRead(); }
  // Returns whether the block declares the array, which is no array outside then.
  bool OwnsArray(const std::string& name) const;
  // Lets feeds of the block have the contents that `of_feed` finds.
  void SetContentsOfFeeds(KnownContents::OfFeed of_feed) {
    contents_.SetOfFeed(std::move(of_feed));
  }
  // Returns the contents of a value if they are known and the same in all runs of the plan and in
  // all iterations, else nullptr; `why` is then the source of the data on which the contents
  // depend.
  KnownContents::Contents ConstantContents(ValueId value, std::string* why);
  // Announces the gradient block, which EnterGradientBlock will name.
  void SetGradientBlock(const Block* block) { gradient_block_ = block; }

  // Appends the instructions of an op. Throws Errors without the op's place.
  void AddOp(const Op& given, size_t position);

  // Returns the value that a read of the name sees now. Throws an Error if nothing has written it.
  ValueId Read(const std::string& name);
  // Returns the same, or none if there is no value.
  ValueId TryRead(const std::string& name);
  // Returns the value that this block has read or written last under the name, or none.
  ValueId Current(const std::string& name) const;
  // Returns the variable that the name means in the block, nullptr if there is none.
  const Var* FindVar(const std::string& name) const;
  void SetCurrent(const std::string& name, ValueId value) { current_[name] = value; }
  // Makes the value of a write: in the scope for a persistable, in the arena for others. Reads see
  // it at once.
  ValueId Write(const OpDef& def, const std::string& name, const TensorMeta& meta);
  ValueId AddValue(const std::string& name, const TensorMeta& meta, Storage storage);
  void Append(Instruction instruction) { plan_.instructions.push_back(std::move(instruction)); }
  // Appends a copy of the value, for the op, and returns it.
  ValueId AppendCopy(const Op& op, const OpDef& def, size_t position, ValueId from);

  // Gradient halves whose op hasn't come yet.
  PreparedGradients& gradients() { return gradients_; }

  // Makes the name mean `value`, a feed. An op must read the feed before an op writes the variable.
  void AddFeed(const std::string& name, ValueId value);
  // Returns whether only a run tells the shape or LoD that a read of the name sees.
  bool IsUnknown(const std::string& name) const;

 private:
  // Throws an Error unless the scope's tensor is as the program declares the variable.
  void CheckHeld(const Var& var, const Tensor& tensor) const;
  Place PlaceOfValue(const std::string& name, const TensorMeta& meta, Storage storage) const;
  void CheckFeeds(const Op& op) const;
  Instruction ReadInputs(const Op& op, const OpDef& def, size_t position);
  // Finds the attributes that inputs give.
  void FindGivenAttributes(Instruction* instruction);
  bool ContentsMayVary(ValueId value) const;
  // Returns the metas of the inputs; nothing unless the shapes and contents that the op reads are
  // known and constant.
  std::optional<std::vector<TensorMeta>> ConstantInputs(const Instruction& instruction);
  // Appends constants for an op whose output shapes depend on data that is known. Returns false,
  // and does nothing, for another op.
  bool MakeConstants(const Instruction& instruction);
  void DefineOutputs(const Op& op, const OpDef& def, Instruction* instruction);
  ValueId Define(const OpDef& def, const std::string& name, const TensorMeta& meta);
  ValueId DefinePersistable(const OpDef& def, const std::string& name, const TensorMeta& meta);
  // Gives a gradient whose rows depend on data the rows of its forward variable.
  void TakeForwardRows(const std::string& gradient, TensorMeta* meta);
  // Sets the known part of the meta of an output whose rows only the kernel knows.
  void DeclareRowsOfRun(TensorMeta* meta) const;
  ValueId AddArray(const std::string& name);
  bool ReadsVaryingRows(const Instruction& instruction) const;
  std::vector<Instruction> WriteScopeOutOfPlace(const Op& op, const OpDef& def,
                                                Instruction* instruction);
  // Adds a value in the arena with the name and meta of `value`.
  ValueId AddTemporaryLike(ValueId value);
  Instruction CopyFor(const Op& op, const OpDef& def, size_t position, ValueId from,
                      ValueId to) const;
  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }

  const LoweringInputs& inputs_;
  const Block* block_;
  const Block* const first_block_;
  const Block* gradient_block_ = nullptr;
  const Capture capture_;
  Plan plan_;
  KnownContents contents_;
  BlockArrays arrays_;
  std::unordered_map<std::string, ValueId> current_;
  std::unordered_set<std::string> unread_feeds_;
  std::set<ValueId> unknown_;  // whose shape or LoD only a run tells
  std::set<ValueId> varying_;  // whose rows may vary
  // The metas of persistables that the program writes and the scope lacks.
  std::unordered_map<std::string, TensorMeta> created_;
  PreparedGradients gradients_;
};

// Returns the meta of a tensor of the scope.
TensorMeta MetaOfHeld(const Tensor& tensor);

}  // namespace skiff
