// Begins a training with the weights of a saved model, as in fine-tuning; and saves weights for
// others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/io/api/name_rules.h"
#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"

namespace skiff::training {

struct InitialWeights {
  std::vector<std::string> taken = {};    // names of parameters that the model has
  std::vector<std::string> missing = {};  // names of parameters that keep their values
  // The dims of tensors that became no parameter, by their names in the model. Empty for
  // checkpoints, which have states of optimizers.
  std::map<std::string, std::vector<int64_t>> unused = {};
  std::vector<std::string> dropped = {};  // names in the model of tensors that a rule drops
};

struct TakeWeightsOptions {
  // How the names of parameters begin that the model may lack, or have in another shape, such as
  // the parameters of a new classifier.
  std::vector<std::string> new_parameters = {};
  bool allow_missing = false;  // the model may lack other parameters, too
  bool allow_unused = false;   // the model may have tensors that become no parameter
  // What makes names of parameters of the model's names (ApplyRules).
  std::vector<NameRule> rename = {};
};

// Replaces the parameters of `program` in the scope by those of the same names in `model`: a
// `.safetensors` file, the `.safetensors.index.json` of several, the directory of an inference
// model (SaveInferenceModel with one file of parameters, or Paddle's), or a directory of
// checkpoints, of which the newest counts. Running statistics of batch norms are parameters, too.
// float32, bfloat16 and float16 begin each other: a parameter in half is rounded, and its master
// weights are the values themselves; from a checkpoint of a training in half, the master weights
// are taken. Throws an Error (kInvalidArgument): if a parameter has another shape or dtype in the
// model; if the model lacks parameters, or has tensors for no parameter, and the options don't
// allow it; if two tensors become one parameter; if tied tensors differ; and if model and program
// have no parameter in common. Also throws what SavedWeights (saved_weights.h) and ApplyRules
// throw. After an Error the scope is as it was.
InitialWeights TakeWeights(const std::string& model, const Program& program, Scope* scope,
                           const TakeWeightsOptions& options = {});

// The mirror image: writes the parameters of `program` to a safetensors file, under the names that
// the rules make of theirs; dropped ones are left out. Throws an Error: kInvalidArgument if two
// parameters get one name, for a rule that ties, and for the transpose of another rank than 2; and
// what ApplyRules, Scope::Get and WriteSafetensors throw.
void WriteWeights(const std::string& path, const Program& program, const Scope& scope,
                  const std::vector<NameRule>& rename = {});

}  // namespace skiff::training
