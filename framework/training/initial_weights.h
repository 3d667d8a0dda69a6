// Begins a training with the weights of a saved model, as in fine-tuning.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff::training {

struct InitialWeights {
  std::vector<std::string> taken;    // names of parameters that the model has
  std::vector<std::string> missing;  // names of parameters that keep their values
};

// Replaces the parameters of `program` in the scope by those of the same names in `model`: a
// `.safetensors` file, the directory of an inference model (SaveInferenceModel with one file of
// parameters), or a directory of checkpoints, of which the newest counts. float32, bfloat16 and
// float16 begin each other: a parameter in half is rounded, and its master weights are the values
// themselves; from a checkpoint of a training in half, the master weights are taken. The model may
// lack parameters whose names begin with an entry of `new_parameters`; if `new_parameters` is
// empty, any. Throws an Error: kInvalidArgument if a parameter has another shape or dtype in the
// model, if the model lacks any other parameter, or if model and program have no parameter in
// common; and what SafetensorsFile, LoadInferenceModel or LoadVariablesOfLatestCheckpoint throws.
// After an Error the scope is as it was.
InitialWeights TakeWeights(const std::string& model, const Program& program, Scope* scope,
                           const std::vector<std::string>& new_parameters = {});

}  // namespace skiff::training
