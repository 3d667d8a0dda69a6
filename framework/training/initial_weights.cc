#include "framework/training/initial_weights.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/checkpoint.h"
#include "framework/io/inference_model.h"
#include "framework/io/safetensors.h"
#include "framework/ir/master_name.h"
#include "framework/tensor/tensor.h"
#include "framework/training/float_casts.h"

namespace skiff::training {
namespace {

// Loads what the model has of the program's parameters, and perhaps other variables.
void LoadSaved(const std::string& model, const Program& program, Scope* saved) {
  if (!IsSafetensorsPath(model)) {
    if (HasCheckpoint(model)) {
      LoadVariablesOfLatestCheckpoint(model, saved);
    } else {
      LoadInferenceModel(model, saved);
    }
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

bool BeginEachOther(DType a, DType b) {
  return a == b || (IsFloat32OrHalf(a) && IsFloat32OrHalf(b));
}

// What the program's variables are to become, as variables of the executor's scope.
class NewValues {
 public:
  explicit NewValues(Executor* saved) : saved_(saved) {}

  // `to`: the variable's dtype in the program.
  void Add(const std::string& name, const std::string& from, DType to) {
    if (saved_->scope().Get(from).dtype() == to) {
      sources_.emplace_back(name, from);
      return;
    }
    casts_.push_back({.from = from, .to = StrCat(name, "@", to), .dtype = to});
    sources_.emplace_back(name, casts_.back().to);
  }

  void AssignTo(Scope* scope) {
    CastFloats(casts_, saved_);
    for (const auto& [name, from] : sources_) scope->Assign(name, saved_->scope().Get(from));
  }

 private:
  Executor* saved_;
  std::vector<FloatCast> casts_;
  std::vector<std::pair<std::string, std::string>> sources_;
};

}  // namespace

InitialWeights TakeWeights(const std::string& model, const Program& program, Scope* scope,
                           const std::vector<std::string>& new_parameters) {
  Executor reader(Place::Cpu());
  Scope& saved = reader.scope();
  LoadSaved(model, program, &saved);
  InitialWeights weights;
  NewValues values(&reader);
  for (const auto& var : program.root()->vars()) {
    if (!var->is_parameter) continue;
    const Tensor* found = saved.Find(var->name);
    if (found == nullptr) {
      weights.missing.push_back(var->name);
      continue;
    }
    const Tensor& from = *found;
    const Tensor& to = scope->Get(var->name);
    SKIFF_ENFORCE(from.shape() == to.shape() && BeginEachOther(from.dtype(), to.dtype()),
                  kInvalidArgument, model, ": parameter \"", var->name, "\" is ", from.dtype(),
                  from.shape(), ", expected ", to.dtype(), to.shape(),
                  ": the model has another configuration");
    const std::string master = MasterName(var->name);
    const bool has_master = IsHalf(from.dtype()) && saved.Find(master) != nullptr;
    const std::string& source = has_master ? master : var->name;
    values.Add(var->name, source, to.dtype());
    if (IsHalf(to.dtype()) && scope->Find(master) != nullptr) {
      values.Add(master, source, DType::kFloat32);
    }
    weights.taken.push_back(var->name);
  }
  SKIFF_ENFORCE(!weights.taken.empty(), kInvalidArgument, model,
                ": the model has none of the parameters to train");
  if (!new_parameters.empty()) CheckMissing(weights.missing, model, new_parameters);
  // Only now: an Error must leave the scope as it was.
  values.AssignTo(scope);
  return weights;
}

}  // namespace skiff::training
