#include "framework/training/initial_weights.h"

#include "framework/base/error.h"
#include "framework/io/inference_model.h"
#include "framework/tensor/tensor.h"

namespace skiff::training {

InitialWeights TakeWeights(const std::string& directory, const Program& program, Scope* scope) {
  Scope saved;
  LoadInferenceModel(directory, &saved, {.params_filename = kCombinedParamsFile});
  InitialWeights weights;
  for (const auto& var : program.root()->vars()) {
    if (!var->is_parameter) continue;
    const Tensor* found = saved.Find(var->name);
    if (found == nullptr) {
      weights.missing.push_back(var->name);
      continue;
    }
    const Tensor& from = *found;
    const Tensor& to = scope->Get(var->name);
    SKIFF_ENFORCE(from.shape() == to.shape() && from.dtype() == to.dtype(), kInvalidArgument,
                  directory, ": parameter \"", var->name, "\" is ", from.dtype(), from.shape(),
                  ", expected ", to.dtype(), to.shape(), ": the model has another configuration");
    weights.taken.push_back(var->name);
  }
  SKIFF_ENFORCE(!weights.taken.empty(), kInvalidArgument, directory,
                ": the model has none of the parameters to train");
  // Only now: an Error must leave the scope as it was.
  for (const std::string& name : weights.taken) scope->Assign(name, saved.Get(name));
  return weights;
}

}  // namespace skiff::training
