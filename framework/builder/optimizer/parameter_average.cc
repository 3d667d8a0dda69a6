#include "framework/builder/optimizer/parameter_average.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "framework/base/error.h"
#include "framework/builder/current_block.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/optimizer/averaged.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/op/registry.h"

namespace skiff::optimizer {
namespace {

bool WantsAverage(const Var& parameter) {
  const auto found = parameter.attrs.find(kDoModelAverageVarAttr);
  if (found == parameter.attrs.end()) return true;
  const auto* value = std::get_if<int32_t>(&found->second);
  return value == nullptr || *value != 0;
}

struct WrittenVariables {
  std::map<std::string, const Var*> parameters;
  std::map<std::string, const Var*> statistics;
};

void AddWrittenBy(const Op& op, const Block& block, WrittenVariables* written) {
  std::set<std::string> statistics;
  const OpDef* def = DefaultOpRegistry().Find(op.type);
  if (def != nullptr) {
    for (const auto& [input, output] : def->running_state) {
      statistics.insert(op.Output(output).begin(), op.Output(output).end());
    }
  }
  for (const std::string& name : op.OutputNames()) {
    const Var* var = block.FindVar(name);
    if (var == nullptr || !var->persistable) continue;
    if (statistics.contains(name)) {
      written->statistics.emplace(name, var);
    } else if (var->is_parameter) {
      written->parameters.emplace(name, var);
    }
  }
}

WrittenVariables WrittenBy(const Program& program) {
  WrittenVariables written;
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = *program.block(static_cast<int32_t>(i));
    for (const auto& op : block.ops()) AddWrittenBy(*op, block, &written);
  }
  return written;
}

// How an update op of the root block treats a parameter.
struct UpdateOf {
  std::string skip;     // what skips it; "": nothing
  std::string weights;  // its master weights; "": none
};

std::map<std::string, UpdateOf> UpdatesByParameter(const Program& program) {
  std::map<std::string, UpdateOf> updates;
  for (const auto& op : program.root()->ops()) {
    const OpDef* def = DefaultOpRegistry().Find(op->type);
    if (def == nullptr || !def->update.has_value()) continue;
    const std::vector<std::string>& skip = op->Input("SkipUpdate");
    const std::vector<std::string>& names = op->Output("ParamOut");
    const std::vector<std::string>& weights = op->Output("MasterParamOut");
    for (size_t i = 0; i < names.size(); ++i) {
      updates[names[i]] = {.skip = skip.empty() ? "" : skip.front(),
                           .weights = weights.empty() ? "" : weights.at(i)};
    }
  }
  return updates;
}

}  // namespace

ParameterAverage::~ParameterAverage() = default;

ParameterAverage::ParameterAverage(const std::string& type, const AveragedVariables& chosen,
                                   const std::source_location& site)
    : type_(type) {
  const LayerCall call(type, type, site);
  call.Enforce(&CurrentBlock() == DefaultMainProgram().root(),
               "a sub-block is open; average in the root block");
  WrittenVariables written = WrittenBy(DefaultMainProgram());
  std::map<std::string, const Var*> taken;
  // Averages what ops write, whatever is marked trainable: a parameter that doesn't change is its
  // own average.
  if (chosen.parameters.empty()) {
    taken = written.parameters;
    std::erase_if(taken, [](const auto& entry) { return !WantsAverage(*entry.second); });
  }
  for (const std::string& name : chosen.parameters) {
    const auto found = written.parameters.find(name);
    call.Enforce(found != written.parameters.end(), "\"", name,
                 "\" is no parameter that the program changes; average after Minimize");
    taken.insert(*found);
  }
  call.Enforce(!taken.empty(),
               "the program changes no parameter that is to be averaged; average after Minimize");
  std::set<std::string> skips;
  std::map<std::string, std::string> weights;
  for (const auto& [name, update] : UpdatesByParameter(DefaultMainProgram())) {
    if (!taken.contains(name)) continue;
    skips.insert(update.skip);
    if (!update.weights.empty()) weights[name] = update.weights;
  }
  // All states of one average have one SkipUpdate, and a window counts updates.
  call.Enforce(skips.size() <= 1, "the parameters are updated in different runs (\"",
               Join(std::vector<std::string>(skips.begin(), skips.end()), "\", \""),
               "\"); average those of each Minimize for themselves");
  if (!skips.empty()) skip_update_ = *skips.begin();
  if (chosen.batch_norm_statistics) taken.merge(written.statistics);
  for (const auto& [name, var] : taken) {
    const auto found = weights.find(name);
    const Var* averaged = var;
    if (found != weights.end()) averaged = DefaultMainProgram().root()->FindVar(found->second);
    call.Enforce(!IsHalf(averaged->dtype), "\"", name, "\" is ", averaged->dtype,
                 " without float32 master weights, which the average needs; set the optimizer's "
                 "option multi_precision = true");
    vars_.push_back({.var = *var, .weights = *averaged});
  }
}

void ParameterAverage::ConnectSkipUpdate(Op* op) const {
  if (!skip_update_.empty()) op->SetInput("SkipUpdate", {skip_update_});
}

std::vector<std::string> ParameterAverage::variables() const {
  std::vector<std::string> names;
  for (const Averaged& averaged : vars_) names.push_back(averaged.var.name);
  return names;
}

std::vector<std::string> ParameterAverage::written() const {
  std::vector<std::string> names = variables();
  for (const Averaged& averaged : vars_) {
    if (averaged.weights.name != averaged.var.name) names.push_back(averaged.weights.name);
  }
  return names;
}

std::string ParameterAverage::NewState(const Var& var, const std::string& kind,
                                       const std::vector<int64_t>& dims, DType dtype, double value,
                                       const std::source_location& site) {
  const std::string name = UniquePersistableName(StrCat(var.name, "_", kind));
  return CreatePersistable(name, dims, dtype, value, site).name();
}

Variable ParameterAverage::State(const std::string& name, const std::vector<int64_t>& dims,
                                 DType dtype) {
  const Variable state = CreatePersistable(name, dims, dtype, 0.0, std::source_location::current());
  return layers::Cast(state, DType::kFloat64);
}

void ParameterAverage::AppendApplication() const {
  for (size_t i = 0; i < vars_.size(); ++i) {
    const Var& var = vars_[i].var;
    Variable average = AppendAverage(i);
    // Divided by a count of shape [1], a scalar has become [1].
    if (var.dims.empty()) average = layers::Reshape(average, {});
    const auto write = [](const Variable& value, const Var& to) {
      const std::source_location site = std::source_location::current();
      Variable target = CreatePersistable(to.name, to.dims, to.dtype, 0.0, site);
      LayerCall("cast", "", site).Append(CastOp(value.var(), target.var()));
      return target;
    };
    const Variable written = write(average, vars_[i].weights);
    if (vars_[i].weights.name != var.name) write(written, var);
  }
}

void ParameterAverage::CheckHasValues(const Scope& scope) const {
  for (size_t i = 0; i < vars_.size(); ++i) {
    SKIFF_ENFORCE(HasValues(scope, i), kFailedPrecondition, type_, ": no value of \"",
                  vars_[i].var.name, "\" was averaged yet; train a step first");
  }
}

std::unique_ptr<Program> ParameterAverage::ApplicationProgram() const {
  auto program = std::make_unique<Program>();
  Program startup;
  const ProgramGuard guard(program.get(), &startup);
  AppendApplication();
  return program;
}

}  // namespace skiff::optimizer
