// The gradient ops of one block. Sub-blocks are differentiated by a BlockBackward of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

// What the blocks of one AppendBackward share. Outlives them.
class BackwardNames {
 public:
  // Gradients get names that no variable of `program` bears yet.
  explicit BackwardNames(Program* program) : program_(program) {}

  // The name of the gradient of a forward variable; the same at each call.
  const std::string& Gradient(const std::string& variable);
  // A new name for one of several contributions to that gradient.
  std::string Contribution(const std::string& variable);
  // From forward variables to gradients, as given so far.
  const std::map<std::string, std::string>& gradients() const { return gradients_; }

 private:
  Program* program_;
  std::map<std::string, std::string> gradients_;
  std::map<std::string, int> contribution_counts_;
};

class BlockBackward {
 public:
  using Filter = std::function<bool(const Block&, const std::string&)>;

  // `leaf_wants(block, x)` tells whether x wants a gradient if no op of the block writes it before
  // it is read. Everything outlives this object.
  BlockBackward(const OpRegistry& registry, BackwardNames* names, const Block& forward,
                Filter leaf_wants, Filter excluded);

  // Where nested gradient blocks are appended: their parent.
  void set_gradient_block_parent(int32_t block) { gradient_block_parent_ = block; }

  // Whether the value that `x` has at the end of the block wants a gradient.
  bool WantsGradient(const std::string& x) const;
  // The last op that writes x; -1 if there is none.
  int64_t LastWriter(const std::string& x) const;

  // The gradient of x starts as what `op` writes to its first output.
  void SeedWithOp(const std::string& x, Op op);
  // The gradient of x comes from outside of the block.
  void SeedFromOutside(const std::string& x);
  // Makes the gradient ops of the forward ops [0, end), last first.
  void Differentiate(size_t end);
  // Appends what was made to `target` and creates the variables of gradients there. Where `infer`,
  // shape rules check the ops.
  void AppendTo(Block* target, bool infer);

 private:
  using NameSet = std::unordered_set<std::string>;
  // An argument of an op that was made; op -1: the gradient comes from outside.
  struct Contribution {
    int64_t op = -1;
    size_t slot = 0;
    size_t argument = 0;
  };
  // For the outputs of one forward op: the names of the gradients that exist.
  using OutputGradients = std::map<std::string, std::string>;
  // From the name of a gradient to the input, or the output, of an op whose gradient it is: for all
  // gradient ops of the op, of which a sum has as many as inputs.
  struct GradientNames {
    explicit GradientNames(const Op& forward);

    std::unordered_map<std::string, std::string> inputs;
    std::unordered_map<std::string, std::string> outputs;
  };

  void RecordForwardOp(const Op& op);
  void DifferentiateOp(size_t position);
  std::vector<Op> GradientOps(const Op& op, const NameSet& wanted,
                              const OutputGradients& output_gradients);
  void AddGradientOp(size_t position, const GradientNames& names, Op gradient_op,
                     OutputGradients* output_gradients);
  void ResolveInputs(size_t position, const GradientNames& names, Op* gradient_op,
                     OutputGradients* output_gradients);
  void RecordOutputs(const GradientNames& names, const NameSet& wanted, int64_t made_index);
  void CheckNotOverwritten(size_t position, const Op& gradient_op, const std::string& slot,
                           const std::string& name) const;
  std::string FillZeros(const Op& forward, const std::string& y);
  // Adds up the contributions to the gradient of x; the name of the result.
  std::string Finish(const std::string& x);
  int32_t DifferentiateSubBlock(const Op& op, const NameSet& wanted,
                                const OutputGradients& output_gradients, int32_t sub_block);
  std::string& ArgumentOf(const Contribution& contribution);
  int64_t Make(Op op, const Op& forward);
  void CreateGradientVars(const Op& op, Block* target);
  void RestoreGradientShapes(const Op& op, Block* target);

  const OpRegistry& registry_;
  BackwardNames* names_;
  const Block& forward_;
  Filter leaf_wants_;
  Filter excluded_;
  int32_t gradient_block_parent_ = 0;

  const BlockDefinitions definitions_;  // of the forward block, before gradients are appended
  std::vector<NameSet> wanted_;         // by forward op: the inputs that want a gradient
  std::unordered_map<std::string, bool> wants_;  // of the latest definition of each name

  std::vector<Op> made_;
  std::vector<std::pair<size_t, Op>> sums_;                  // each goes behind made_[first]
  std::map<std::string, std::vector<Contribution>> open_;    // by forward variable
  std::unordered_map<std::string, std::string> forward_of_;  // from gradients to variables
};

}  // namespace skiff
