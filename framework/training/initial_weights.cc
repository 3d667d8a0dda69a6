#include "framework/training/initial_weights.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "framework/base/error.h"
#include "framework/io/inference_model.h"
#include "framework/io/safetensors.h"
#include "framework/tensor/tensor.h"

namespace skiff::training {
namespace {

// Loads what the model has of the program's parameters, and perhaps other variables.
void LoadSaved(const std::string& model, const Program& program, Scope* saved) {
  if (!IsSafetensorsPath(model)) {
    LoadInferenceModel(model, saved);
    return;
  }
  SafetensorsFile file(model);
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter && file.Contains(var->name)) saved->Set(var->name, file.Read(var->name));
  }
}

void CheckMissing(const std::vector<std::string>& missing, const std::string& model,
                  const std::vector<std::string>& new_parameters) {
  const auto is_new = [&](const std::string& name) {
    return std::ranges::any_of(new_parameters,
                               [&](const std::string& start) { return name.starts_with(start); });
  };
  std::vector<std::string> wanted;
  std::ranges::copy_if(missing, std::back_inserter(wanted), std::not_fn(is_new));
  SKIFF_ENFORCE(wanted.empty(), kInvalidArgument, model, ": the model lacks the parameters ",
                Join(wanted, ", "), ": expected all but those of ", Join(new_parameters, " and "),
                ": the model has another configuration");
}

}  // namespace

InitialWeights TakeWeights(const std::string& model, const Program& program, Scope* scope,
                           const std::vector<std::string>& new_parameters) {
  Scope saved;
  LoadSaved(model, program, &saved);
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
    SKIFF_ENFORCE(from.shape() == to.shape() && from.dtype() == to.dtype(), kInvalidArgument, model,
                  ": parameter \"", var->name, "\" is ", from.dtype(), from.shape(), ", expected ",
                  to.dtype(), to.shape(), ": the model has another configuration");
    weights.taken.push_back(var->name);
  }
  SKIFF_ENFORCE(!weights.taken.empty(), kInvalidArgument, model,
                ": the model has none of the parameters to train");
  if (!new_parameters.empty()) CheckMissing(weights.missing, model, new_parameters);
  // Only now: an Error must leave the scope as it was.
  for (const std::string& name : weights.taken) scope->Assign(name, saved.Get(name));
  return weights;
}

}  // namespace skiff::training
