// Differentiates one block. Internal to framework/autodiff.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/analysis/definitions.h"
#include "framework/ir/program.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"

namespace skiff {

// The names of gradients, shared by all blocks of one AppendBackward. Must outlive them.
class BackwardNames {
 public:
  // Gradients get names that no variable of `program` has. Without a program, the gradient of x is
  // x@GRAD: ops that run gradient blocks expect these names inside.
  explicit BackwardNames(Program* program) : program_(program) {}

  // Returns the name of a forward variable's gradient; the same for each call.
  const std::string& Gradient(const std::string& variable);
  // Returns a new name for one of several contributions to that gradient.
  std::string Contribution(const std::string& variable);
  // Maps forward variables to the gradients named so far.
  const std::map<std::string, std::string>& gradients() const { return gradients_; }

 private:
  Program* program_;
  std::map<std::string, std::string> gradients_;
  std::map<std::string, int> contribution_counts_;
};

struct BlockGradient;
struct BlockGradientRequest;

// Differentiates an op that runs a block. The block itself takes another BlockBackward, so the one
// of the outer block is given the function (DifferentiateBlock in loop_backward.h).
using BlockDifferentiator = BlockGradient (*)(const BlockGradientRequest& request);

class BlockBackward {
 public:
  using Filter = std::function<bool(const Var&)>;

  // `leaf_wants(x)` returns whether x wants a gradient if no op of the block writes x before an op
  // reads it. `excluded(x)` returns whether x wants no gradient although an op computes x from a
  // variable that does; `wanted_anyway(x)`, whether x wants a gradient although an op computes x
  // from variables without. All arguments must outlive this object.
  BlockBackward(
      const OpRegistry& registry, BlockDifferentiator differentiate_block, BackwardNames* names,
      const Block& forward, Filter leaf_wants, Filter excluded,
      Filter wanted_anyway = [](const Var&) { return false; });
  ~BlockBackward();

  // Returns whether the value of `x` at the end of the block wants a gradient.
  bool WantsGradient(const std::string& x) const;
  // Returns which ops on the way to x have an input that wants a gradient, but let none through:
  // where they are and why, the last one first, with "; " between them. Empty if there is none.
  std::string OpsWithoutGradient(const std::string& x) const;
  // Returns the position of the last op that writes x, or -1.
  int64_t LastWriter(const std::string& x) const;

  // Makes the first output of `op` the initial gradient of x.
  void SeedWithOp(const std::string& x, Op op);
  // Says that the gradient of x exists when the gradient block begins.
  void SeedFromOutside(const std::string& x);
  // Says that the block is the body of a loop or a branch: values that gradient ops read and that
  // the block overwrites are then copied. It writes `captured`, variables of outer blocks, and
  // `persistables`, variables of the scope.
  void SetBody(bool is_loop, std::set<std::string> captured, std::set<std::string> persistables);
  // Makes the gradient ops of forward ops [0, end), the last op first. Throws Error
  // (kUnimplemented) naming the op if a gradient would have to pass through an op that has no
  // gradient.
  void Differentiate(size_t end);
  // Returns whether Differentiate has made the gradient of the value that x has when the block
  // begins.
  bool Reaches(const std::string& x) const { return reached_.contains(x); }
  // Appends the gradient ops to `target`, checks them by shape rules, and creates the variables of
  // gradients there. Creates the gradient blocks of loops, and makes the forward blocks of loops
  // keep the values that gradient ops read.
  void AppendTo(Block* target);

 private:
  using NameSet = std::unordered_set<std::string>;
  // An argument of a gradient op; op = -1: a gradient that exists when the gradient block begins.
  struct Contribution {
    int64_t op = 0;
    size_t slot = 0;
    size_t argument = 0;
  };
  // Maps the outputs of one forward op to the names of the gradients that exist.
  using OutputGradients = std::map<std::string, std::string>;
  // Maps the names of gradients to the inputs and outputs of a forward op that they belong to.
  // Serves all gradient ops of the op; a sum has one per input.
  struct GradientNames {
    explicit GradientNames(const Op& forward);

    std::unordered_map<std::string, std::string> inputs;
    std::unordered_map<std::string, std::string> outputs;
  };

  bool WantsGradient(const Var& var) const;
  void RecordForwardOp(size_t position);
  void RecordOpWithBlocks(size_t position);
  void DifferentiateOp(size_t position);
  void ForgetElement(size_t position, OutputGradients* output_gradients);
  void DifferentiateBlockOp(size_t position);
  void CheckNoGradientThroughBlocks(size_t position) const;
  std::vector<Op> GradientOps(const Op& op, const NameSet& wanted);
  void AddGradientOp(size_t position, const GradientNames& names, Op gradient_op,
                     OutputGradients* output_gradients);
  void ResolveInputs(size_t position, const GradientNames& names, Op* gradient_op,
                     OutputGradients* output_gradients);
  void RecordOutputs(const GradientNames& names, const NameSet& wanted, int64_t made_index);
  std::string NameOfRead(size_t position, const Op& gradient_op, const std::string& slot,
                         const std::string& name);
  // Returns a variable of the block with what `var` holds before the op at `position`.
  std::string CopyBefore(size_t position, const Var& var);
  void KeepCarriedOutputs(const BlockGradient& gradient, int64_t made_index);
  void AppendBlock(BlockGradient* gradient, Op* op, Block* target);
  void ChangeForwardBlock(Program* program);
  std::string FillZeros(const Op& forward, const std::string& y);
  // Adds up the contributions to the gradient of x. Returns the name of the result.
  std::string Finish(const std::string& x);
  std::string& ArgumentOf(const Contribution& contribution);
  int64_t Make(Op op, const Op& forward);
  void CreateGradientVars(const Op& op, Block* target);
  void RestoreGradientShapes(const Op& op, Block* target);

  const OpRegistry& registry_;
  BlockDifferentiator differentiate_block_;
  BackwardNames* names_;
  const Block& forward_;
  Filter leaf_wants_;
  Filter excluded_;
  Filter wanted_anyway_;

  const BlockDefinitions definitions_;  // of the forward block, before gradients were appended
  std::vector<NameSet> wanted_;         // by forward op: the inputs that want a gradient
  std::unordered_map<const Var*, bool> wants_;  // of the latest definition of each variable
  // By the position of an op: an output that depends on a variable with a gradient, but whose dtype
  // or kind can't have a gradient.
  std::map<size_t, const Var*> ends_;

  // Of the body of a loop or branch.
  struct Copy {
    size_t position = 0;  // before this op
    std::string from;
    std::string to;
  };
  bool is_body_ = false;
  bool is_loop_ = false;
  std::set<std::string> captured_;      // variables of outer blocks that the body writes
  std::set<std::string> persistables_;  // variables of the scope that the body writes
  std::vector<Copy> copies_;
  // Inputs that ops with blocks need, by position.
  std::vector<std::pair<size_t, SlotArguments>> added_inputs_;

  std::unordered_set<std::string> reached_;
  std::map<int64_t, std::unique_ptr<BlockGradient>> blocks_;  // by gradient op in made_
  std::vector<Op> made_;
  std::vector<std::pair<size_t, Op>> sums_;                  // each belongs after made_[first]
  std::map<std::string, std::vector<Contribution>> open_;    // by forward variable
  std::set<std::string> open_arrays_;                        // arrays that have a gradient
  std::unordered_map<std::string, std::string> forward_of_;  // from gradients to variables
};

// The gradient of an op that runs a block.
struct BlockGradient {
  Op op;                           // the gradient op, without its block
  const Block* forward = nullptr;  // the forward op's block
  bool is_loop = false;
  std::unique_ptr<BackwardNames> names;
  std::unique_ptr<BlockBackward> inner;  // differentiated
  // Variables of the forward block whose gradients exist when the gradient block begins.
  std::set<std::string> seeds;
  // Variables whose gradients go from each iteration to the one before.
  std::set<std::string> carried;
  // Variables of `carried` that the block overwrites before it reads them: their gradients end as
  // 0.
  std::set<std::string> reset;
  // Inputs that the forward op needs in addition.
  SlotArguments added_inputs;
};

struct BlockGradientRequest {
  const OpRegistry& registry;
  const Block& outer;  // of the forward op
  size_t position = 0;
  const BlockDefinitions& definitions;  // of `outer`
  // Variables that the block uses and that want a gradient before the op runs.
  const std::unordered_set<std::string>& wanted;
  // Results that have a gradient.
  const std::set<std::string>& given;
  const BlockBackward::Filter& excluded;
};

}  // namespace skiff
