// Minimize works on the default programs and appends, in this order: gradient ops, the gate
// (gradient accumulation, check for finite gradients), clipping, regularization, learning rates,
// one update op per parameter, ops that must follow all updates. Parameters are sorted by name, so
// that the program doesn't depend on the order in which layers were built. If anything throws,
// `RestoredProgram` takes all of it back.
#include "framework/builder/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/call_site.h"
#include "framework/builder/control.h"
#include "framework/builder/current_block.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/gradient_ops.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/scaled_loss.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/update_condition.h"
#include "framework/builder/warning.h"
#include "framework/ir/master_name.h"
#include "framework/ir/op_role.h"
#include "framework/ir/restored_program.h"
#include "framework/ir/used_names.h"
#include "framework/op/registry.h"
#include "framework/precision/half_rewrite.h"
#include "framework/tensor/dims_agree.h"
#include "framework/tensor/shape.h"

namespace skiff::optimizer {
namespace {

// So that the updates don't depend on the order in which layers made the parameters.
void SortByName(std::vector<ParameterGradient>* pairs) {
  std::ranges::sort(*pairs, {}, [](const ParameterGradient& pair) -> const std::string& {
    return pair.parameter->name;
  });
}

std::vector<ParameterGradient> AppendGradients(Program* program, const Variable& loss,
                                               const MinimizeOptions& options,
                                               const std::source_location& site) {
  BackwardResult result;
  try {
    result = AppendBackward(
        DefaultOpRegistry(), program, loss.name(),
        {.parameters = options.parameters, .no_grad = options.no_grad, .needs_parameter = true});
  } catch (const Error& error) {
    throw error.WithContext(SiteText(site));
  }
  SortByName(&result.parameters);
  return std::move(result.parameters);
}

// PaddlePaddle's update ops take no other dtype.
DType RateDType(const Var& parameter) {
  return parameter.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Variable CheckedRate(const LearningRate& rate, DType dtype, const std::source_location& site) {
  if (rate.is_constant()) return learning_rate::Constant(rate.value(), dtype, site);
  const LayerCall call("minimize", "minimize", site);
  call.CheckedName(rate.variable());
  call.Enforce(rate.variable().dims() == std::vector<int64_t>{1}, "the learning rate \"",
               rate.variable().name(), "\" must be of shape [1]");
  return rate.variable();
}

// The learning rate in each dtype and with each factor that parameters ask for. Each is computed
// once.
class RateByParameter {
 public:
  RateByParameter(Variable rate, const std::source_location& site)
      : rate_(std::move(rate)), site_(site) {}

  std::string For(const Var& parameter) {
    const std::pair key(RateDType(parameter), parameter.learning_rate_factor);
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    Variable rate = rate_;
    if (rate.dtype() != key.first) rate = layers::Cast(rate, key.first, site_);
    if (key.second != 1.0f) rate = layers::Scale(rate, {.scale = key.second}, site_);
    return made_.emplace(key, rate.name()).first->second;
  }

 private:
  Variable rate_;
  std::source_location site_;
  std::map<std::pair<DType, float>, std::string> made_;
};

std::string Accumulator(const Var& weights, std::string_view kind, const std::vector<int64_t>& dims,
                        double value, const std::source_location& site) {
  const std::string name = UniquePersistableName(StrCat(weights.name, "_", kind));
  return CreatePersistable(name, dims, weights.dtype, value, site).name();
}

// Returns the variable that is updated for a parameter: the parameter; its master weights, from
// which the startup program makes it (RewriteToHalf); or new ones, which the startup program copies
// from it.
const Var& WeightsOf(const Var& parameter, bool multi_precision, const LayerCall& call,
                     const std::source_location& site) {
  if (!IsHalf(parameter.dtype)) return parameter;
  const Var* master = DefaultMainProgram().root()->FindLocalVar(MasterName(parameter.name));
  if (master != nullptr) return *master;
  call.Enforce(multi_precision, "parameter \"", parameter.name, "\" is ", parameter.dtype,
               "; set the optimizer's option multi_precision = true, which keeps float32 weights");
  const std::string name = DefaultMainProgram().UniqueName(parameter.name + "_fp32_master");
  const Initializer first([&](const Var& weights) { return CastOp(parameter, weights); });
  return CreatePersistable(name, parameter.dims, DType::kFloat32, first, site).var();
}

// Update ops write what they read, so they are the parameter's next definition.
void SetInPlace(Op* op, const std::string& slot, const std::string& output,
                const std::string& name) {
  op->SetInput(slot, {name});
  op->SetOutput(output, {name});
}

void CheckWanted(const LayerCall& call, const std::vector<std::string>& wanted,
                 const std::vector<ParameterGradient>& pairs) {
  for (const std::string& name : wanted) {
    const bool found = std::ranges::any_of(
        pairs, [&](const ParameterGradient& pair) { return pair.parameter->name == name; });
    call.Enforce(found, "parameter \"", name,
                 "\" gets no gradient: the loss does not depend on it");
  }
}

// Whether the op is an optimizer's that updates parameters.
bool IsUpdate(const Op& op) {
  const OpDef* def = DefaultOpRegistry().Find(op.type);
  return (op.role() & kRoleOptimize) != 0 && def != nullptr && def->update.has_value();
}

// From each parameter to the type of the op that updates it.
std::map<std::string, std::string> UpdatesOf(const Program& program) {
  std::map<std::string, std::string> updates;
  for (size_t k = 0; k < program.block_count(); ++k) {
    for (const auto& op : program.block(static_cast<int32_t>(k))->ops()) {
      if (!IsUpdate(*op)) continue;
      for (const std::string& parameter : op->Output("ParamOut")) updates[parameter] = op->type;
    }
  }
  return updates;
}

std::unique_ptr<Program> WithoutUpdates(const Program& program) {
  std::unique_ptr<Program> copy = program.Clone();
  for (size_t k = 0; k < copy->block_count(); ++k) {
    Block* block = copy->block(static_cast<int32_t>(k));
    for (size_t i = block->ops().size(); i-- > 0;) {
      if (IsUpdate(*block->ops()[i])) block->RemoveOps(i, i + 1);
    }
  }
  return copy;
}

// Refuses parameters that an op updates already. Two optimizers that update one parameter are
// almost certainly a mistake: the second one would work with the gradient of a value that no longer
// exists.
void CheckFirst(const LayerCall& call, const std::string& optimizer,
                const std::map<std::string, std::string>& updates,
                const std::vector<ParameterGradient>& pairs) {
  for (const ParameterGradient& pair : pairs) {
    const auto update = updates.find(pair.parameter->name);
    if (update == updates.end()) continue;
    call.Fail(StrCat("parameter \"", update->first, "\" is updated by \"", update->second,
                     "\" already, and \"", optimizer, "\" would be its second optimizer"));
  }
}

// AppendGradients to the default main program, of parameters that no op of it updates.
std::vector<ParameterGradient> AppendFirstGradients(const LayerCall& call,
                                                    const std::string& optimizer,
                                                    const Variable& loss,
                                                    const MinimizeOptions& options,
                                                    const std::source_location& site) {
  Program& main = DefaultMainProgram();
  const std::map<std::string, std::string> updates = UpdatesOf(main);
  const auto check = [&](const std::vector<ParameterGradient>& pairs) {
    CheckFirst(call, optimizer, updates, pairs);
  };
  // AppendBackward refuses gradient ops that read a parameter after an update of it. So to find out
  // which parameters this optimizer would update, the gradients are appended to a copy without
  // updates.
  const auto check_without_updates = [&] {
    check(AppendGradients(WithoutUpdates(main).get(), loss, options, site));
  };
  // With sub-blocks the check comes first, since gradient blocks would stay in the program after an
  // Error.
  const bool has_sub_blocks = main.block_count() > 1;
  if (!updates.empty() && has_sub_blocks) check_without_updates();
  std::vector<ParameterGradient> pairs;
  try {
    pairs = AppendGradients(&main, loss, options, site);
  } catch (const Error& error) {
    const bool may_be_of_an_update = error.code() == ErrorCode::kFailedPrecondition;
    if (!updates.empty() && !has_sub_blocks && may_be_of_an_update) check_without_updates();
    throw;
  }
  check(pairs);
  return pairs;
}

// The variables of Minimized::left.
std::vector<std::string> LeftUntrained(const Program& program, const Variable& loss,
                                       const MinimizeOptions& options) {
  if (!options.parameters.empty()) return {};
  // Learning rates and states are no parts of the network.
  const std::set<std::string> read =
      NamesRead(*program.Prune({}, {loss.name()}), kRoleOptimize | kRoleLRSched);
  const std::set<std::string> written = NamesWritten(program);
  std::vector<std::string> left;
  for (const auto& var : program.root()->vars()) {
    const bool is_frozen =
        var->stop_gradient || !var->trainable || std::ranges::count(options.no_grad, var->name) > 0;
    const bool may_be_weight = !var->is_parameter && var->persistable &&
                               var->kind == VarKind::kLoDTensor && IsFloat(var->dtype);
    if (may_be_weight && !is_frozen && read.contains(var->name) && !written.contains(var->name)) {
      left.push_back(var->name);
    }
  }
  std::ranges::sort(left);
  return left;
}

void WarnOfLeft(const Minimized& minimized, const std::source_location& site) {
  if (minimized.left.empty()) return;
  constexpr std::ptrdiff_t kShown = 10;
  const std::vector<std::string>& left = minimized.left;
  const std::vector<std::string> shown(left.begin(),
                                       left.begin() + std::min(kShown, std::ssize(left)));
  Warn(StrCat(SiteText(site), ": minimize: ", minimized.trained.size(),
              " parameters are trained, but not these ", left.size(),
              " variables, which the loss depends on and nothing freezes: ", Join(shown, ", "),
              std::ssize(left) > kShown ? ", …" : "", "; they aren't marked as parameters"));
}

// Which runs update.
struct Gate {
  std::optional<MergeRound> round;
  Variable squared_norm;  // of all gradients; undefined if it isn't needed
  Variable skip;          // a bool: whether a run leaves all as it is; undefined: none does
};

// `scale`: by which the gradients are multiplied, as `scaling` says; nullptr: none.
Gate AppendGate(const ApplyGradientsOptions& options, const std::optional<LossScaling>& scaling,
                const LossScale* scale, std::vector<NamedGradient>* gradients,
                const std::source_location& site) {
  Gate gate;
  if (options.gradient_merge.steps != 1) {
    gate.round = AppendGradientMerge(options.gradient_merge, gradients, site);
    gate.skip = layers::LogicalNot(gate.round->is_last, site);
  }
  if (!options.skip_non_finite && scale == nullptr) return gate;
  gate.squared_norm = SquaredGlobalNorm(*gradients, site);
  const Variable broken = AppendNonFiniteCheck(gate.squared_norm, gate.skip, site);
  if (scale != nullptr) {
    AppendScaleUpdate(*scaling, *scale, broken, gate.skip, site);
  }
  gate.skip = gate.skip.defined() ? layers::LogicalOr(gate.skip, broken, site) : broken;
  return gate;
}

// Appends the op with a new variable as its output, and returns an op that copies this into the
// variable that the op was to write, unless the run is skipped.
Op UnlessSkipped(Op op, const Gate& gate, const LayerCall& call) {
  const std::string target = op.Output("Out").at(0);
  const Variable next = call.AppendFor(std::move(op));
  Op choice("where");
  choice.SetInput("Condition", {gate.skip.name()});
  choice.SetInput("X", {target}).SetInput("Y", {next.name()}).SetOutput("Out", {target});
  return choice;
}

}  // namespace

Minimized Optimizer::Minimize(const Variable& loss, const MinimizeOptions& options,
                              std::source_location site) const {
  RestoredProgram main(&DefaultMainProgram());
  RestoredProgram startup(&DefaultStartupProgram());
  const LayerCall call("minimize", "minimize", site);
  call.CheckedName(loss);
  call.Enforce(&CurrentBlock() == DefaultMainProgram().root(),
               "a sub-block is open; minimize in the root block");
  const std::optional<HalfReport> half = RewriteDefaultPrograms(loss, options.precision, site);
  std::optional<LossScale> scale;
  Variable differentiated = loss;
  const std::optional<LossScaling> scaling = ScalingOf(options.precision);
  if (scaling) {
    {
      const OpRoleGuard role(kRoleOptimize);
      scale = AppendLossScale(*scaling, site);
    }
    const OpRoleGuard role(kRoleBackward);
    differentiated = ScaledLoss(loss, *scale, site);
  }
  std::vector<ParameterGradient> pairs =
      AppendFirstGradients(call, op_, differentiated, options, site);
  CheckWanted(call, options.parameters, pairs);
  AppendUpdates(
      pairs, {.gradient_merge = options.gradient_merge, .skip_non_finite = options.skip_non_finite},
      scaling, scale ? &*scale : nullptr, site);
  Minimized minimized{.trained = std::move(pairs),
                      .left = LeftUntrained(DefaultMainProgram(), loss, options),
                      .half = half};
  WarnOfLeft(minimized, site);
  main.Stay();
  startup.Stay();
  return minimized;
}

std::optional<Op> Optimizer::Finish(const Op& /*update*/) const { return std::nullopt; }

void Optimizer::ApplyGradients(const std::vector<std::pair<Variable, Variable>>& pairs,
                               const ApplyGradientsOptions& options,
                               std::source_location site) const {
  RestoredProgram main(&DefaultMainProgram());
  RestoredProgram startup(&DefaultStartupProgram());
  const LayerCall call("apply_gradients", "apply_gradients", site);
  const Block* root = DefaultMainProgram().root();
  call.Enforce(&CurrentBlock() == root, "a sub-block is open; apply gradients in the root block");
  call.Enforce(!pairs.empty(), "there are no pairs of a parameter and a gradient");
  std::vector<ParameterGradient> applied;
  for (const auto& [parameter, gradient] : pairs) {
    Var* var = root->FindLocalVar(call.CheckedName(parameter));
    Var* by = root->FindLocalVar(call.CheckedName(gradient));
    call.Enforce(var->is_parameter, "\"", var->name, "\" is no parameter");
    const bool has_dtype =
        by->dtype == var->dtype || (IsHalf(var->dtype) && by->dtype == DType::kFloat32);
    call.Enforce(DimsAgree(by->dims, var->dims) && has_dtype, "the gradient \"", by->name,
                 "\" of parameter \"", var->name, "\" is ", by->dtype, " ", Shape(by->dims),
                 ", expected ", var->dtype, " ", Shape(var->dims));
    const bool is_new = std::ranges::none_of(
        applied, [&](const ParameterGradient& pair) { return pair.parameter == var; });
    call.Enforce(is_new, "parameter \"", var->name, "\" is there twice");
    applied.push_back({var, by});
  }
  CheckFirst(call, op_, UpdatesOf(DefaultMainProgram()), applied);
  SortByName(&applied);
  ApplyGradientsOptions gated = options;
  // Gradients that were divided by a loss scale may be infinite.
  if (HasLossScale(*root)) gated.skip_non_finite = true;
  AppendUpdates(applied, gated, {}, nullptr, site);
  main.Stay();
  startup.Stay();
}

void Optimizer::AppendUpdates(const std::vector<ParameterGradient>& pairs,
                              const ApplyGradientsOptions& options,
                              const std::optional<LossScaling>& scaling, const LossScale* scale,
                              const std::source_location& site) const {
  Block* root = DefaultMainProgram().root();
  const OpRoleGuard role(kRoleOptimize);
  const bool slows_schedules = HasToSlowSchedules(learning_rate_, options.gradient_merge, site);
  const LayerCall call("minimize", "minimize", site);
  std::vector<NamedGradient> gradients;
  for (const ParameterGradient& pair : pairs) {
    gradients.push_back({pair.parameter, Variable(root, pair.gradient->name),
                         &WeightsOf(*pair.parameter, multi_precision_, call, site)});
  }
  // gradient_merge reads two-byte gradients as they are.
  if (options.gradient_merge.steps == 1) {
    AppendWidening(clip_, regularization_, options.skip_non_finite || scale != nullptr, &gradients,
                   site);
  }
  const Gate gate = AppendGate(options, scaling, scale, &gradients, site);
  AppendClip(clip_, &gradients, site, gate.squared_norm,
             scale == nullptr ? Variable() : scale->inverse);
  AppendRegularization(regularization_, &gradients, site);
  RateByParameter rates(CheckedRate(learning_rate_, RateDType(*gradients.front().parameter), site),
                        site);
  const auto append = [&](size_t i, Op op) {
    const Op* appended = call.Append(std::move(op));
    MarkParameterOps(root->ops().size() - 1, {pairs[i].parameter->name, pairs[i].gradient->name});
    return appended;
  };
  std::vector<const Op*> updates;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Var& parameter = *pairs[i].parameter;
    Op op(op_);
    const Var& weights = *gradients[i].weights;
    SetInPlace(&op, "Param", "ParamOut", parameter.name);
    if (&weights != &parameter) {
      SetInPlace(&op, "MasterParam", "MasterParamOut", weights.name);
      op.SetAttr("multi_precision", true);
    }
    op.SetInput("Grad", {gradients[i].gradient.name()});
    op.SetInput("LearningRate", {rates.For(parameter)});
    if (gate.skip.defined()) op.SetInput("SkipUpdate", {gate.skip.name()});
    Complete({parameter, weights, site}, &op);
    updates.push_back(append(i, std::move(op)));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::optional<Op> last = Finish(*updates[i]);
    if (last.has_value()) append(i, gate.skip.defined() ? UnlessSkipped(*last, gate, call) : *last);
  }
  if (slows_schedules) AdvanceSchedulesByRound(options.gradient_merge, *gate.round, site);
}

void Optimizer::AddState(const Update& update, Op* op, const std::string& slot,
                         std::string_view kind, double value, std::string output) {
  const std::string name =
      Accumulator(update.weights, kind, update.weights.dims, value, update.site);
  SetInPlace(op, slot, output.empty() ? slot + "Out" : std::move(output), name);
}

std::string Optimizer::AddNumber(const Update& update, Op* op, std::string_view slot,
                                 std::string_view kind, double value) {
  std::string name = Accumulator(update.weights, kind, {1}, value, update.site);
  op->SetInput(slot, {name});
  return name;
}

void Optimizer::CheckOption(bool holds, const char* option, float value,
                            const char* expected) const {
  LayerCall(op_, op_, site_).Enforce(holds, option, " = ", value, ", expected ", expected);
}

void Optimizer::CheckFraction(const char* option, float value) const {
  CheckOption(value >= 0.0f && value < 1.0f, option, value, "a number in [0, 1)");
}

void Optimizer::CheckPositive(const char* option, float value) const {
  CheckOption(value > 0.0f && std::isfinite(value), option, value, "a positive number");
}

void Optimizer::CheckNotNegative(const char* option, float value) const {
  CheckOption(value >= 0.0f && std::isfinite(value), option, value, "a number of at least 0");
}

void Optimizer::CheckNameParts(const char* option, const std::vector<std::string>& parts) const {
  LayerCall(op_, op_, site_)
      .Enforce(std::ranges::count(parts, "") == 0, option,
               " has an empty text, expected parts of parameters' names");
}

bool Optimizer::HasAnyPart(const std::string& name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

}  // namespace skiff::optimizer
