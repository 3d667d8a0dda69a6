// The rounds of gradient_merge (framework/builder/gradient_merge.h) of a training.
//
// Within a round, each rank has a sum of its own gradients, and an update needs them all. Between
// two rounds the sums hold nothing that a training needs. So checkpoints that several ranks, or
// another number of ranks, may go on from are made between two rounds.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/tensor.h"

namespace skiff::training {

class MergeRounds {
 public:
  explicit MergeRounds(const Program& program);

  // Returns whether the values of the program in the scope are between two rounds; true if the
  // program merges no gradients.
  bool AreOver(const Scope& scope) const;

 private:
  std::vector<std::string> counts_;
};

// Returns whether the variable is a count or a sum of a round.
bool IsOfMergeRound(const std::string& name);

// Throws an Error (kFailedPrecondition) if the variable, of a checkpoint, says that the checkpoint
// was made within a round.
void CheckBetweenRounds(const std::string& name, const Tensor& value);

}  // namespace skiff::training
