#include "framework/builder/optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/gradient_ops.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/ir/op_role.h"
#include "framework/op/registry.h"

namespace skiff::optimizer {
namespace {

std::vector<ParameterGradient> Gradients(const Variable& loss, const MinimizeOptions& options,
                                         const std::source_location& site) {
  const LayerCall call("minimize", "minimize", site);
  call.Use(loss);
  call.Enforce(&CurrentBlock() == DefaultMainProgram().root(),
               "a sub-block is open; minimize in the root block");
  BackwardResult result;
  try {
    result = AppendBackward(
        DefaultOpRegistry(), &DefaultMainProgram(), loss.name(),
        {.parameters = options.parameters, .no_grad = options.no_grad, .needs_parameter = true});
  } catch (const Error& error) {
    throw error.WithContext(StrCat(site.file_name(), ":", site.line()));
  }
  std::sort(result.parameters.begin(), result.parameters.end(),
            [](const ParameterGradient& a, const ParameterGradient& b) {
              return a.parameter->name < b.parameter->name;
            });
  return std::move(result.parameters);
}

// PaddlePaddle's update ops take no other.
DType RateDType(const Var& parameter) {
  return parameter.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Variable CheckedRate(const LearningRate& rate, DType dtype, const std::source_location& site) {
  if (rate.is_constant()) return learning_rate::Constant(rate.value(), dtype, site);
  const LayerCall call("minimize", "minimize", site);
  call.Use(rate.variable());
  call.Enforce(rate.variable().dims() == std::vector<int64_t>{1}, "the learning rate \"",
               rate.variable().name(), "\" must be of shape [1]");
  return rate.variable();
}

// The rate in each dtype, times each factor, that parameters ask for; each is computed once.
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

// Update ops write what they read, so they are the parameter's next definition.
void SetInPlace(Op* op, std::string_view slot, const std::string& name) {
  op->SetInput(slot, {name});
  op->SetOutput(std::string(slot) + "Out", {name});
}

Op UpdateOp(const char* type, const std::string& parameter, const std::string& gradient,
            const std::string& rate) {
  Op op(type);
  SetInPlace(&op, "Param", parameter);
  op.SetInput("Grad", {gradient}).SetInput("LearningRate", {rate});
  return op;
}

}  // namespace

std::vector<ParameterGradient> Optimizer::Minimize(const Variable& loss,
                                                   const MinimizeOptions& options,
                                                   std::source_location site) const {
  const std::vector<ParameterGradient> pairs = Gradients(loss, options, site);
  Block* root = DefaultMainProgram().root();
  const OpRoleGuard role(kRoleOptimize);
  std::vector<NamedGradient> gradients;
  for (const ParameterGradient& pair : pairs) {
    gradients.push_back({pair.parameter, Variable(root, pair.gradient->name)});
  }
  AppendClip(options_.clip, &gradients, site);
  AppendRegularization(options_.regularization, &gradients, site);
  RateByParameter rates(
      CheckedRate(options_.learning_rate, RateDType(*gradients.front().parameter), site), site);
  const LayerCall call("minimize", "minimize", site);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Var& parameter = *gradients[i].parameter;
    const std::string rate = rates.For(parameter);
    const size_t first = root->ops().size();
    call.Append(MakeUpdate({parameter, gradients[i].gradient.name(), rate, site}));
    MarkParameterOps(first, {parameter.name, pairs[i].gradient->name});
  }
  return pairs;
}

std::string Optimizer::Accumulator(const Update& update, std::string_view kind,
                                   const std::vector<int64_t>& dims, double value) {
  const std::string name =
      DefaultMainProgram().UniqueName(StrCat(update.parameter.name, "_", kind));
  return CreatePersistable(name, dims, update.parameter.dtype, value, update.site).name();
}

Sgd::Sgd(const SgdOptions& options)
    : Optimizer({options.learning_rate, options.clip, options.regularization}) {}

Op Sgd::MakeUpdate(const Update& update) const {
  return UpdateOp("sgd", update.parameter.name, update.gradient, update.learning_rate);
}

Momentum::Momentum(const MomentumOptions& options)
    : Optimizer({options.learning_rate, options.clip, options.regularization}),
      momentum_(options.momentum),
      use_nesterov_(options.use_nesterov) {}

Op Momentum::MakeUpdate(const Update& update) const {
  Op op = UpdateOp("momentum", update.parameter.name, update.gradient, update.learning_rate);
  SetInPlace(&op, "Velocity", Accumulator(update, "velocity", update.parameter.dims, 0.0));
  op.SetAttr("mu", momentum_).SetAttr("use_nesterov", use_nesterov_);
  return op;
}

Adam::Adam(const AdamOptions& options)
    : Optimizer({options.learning_rate, options.clip, options.regularization}),
      beta1_(options.beta1),
      beta2_(options.beta2),
      epsilon_(options.epsilon),
      lazy_mode_(options.lazy_mode) {
  SKIFF_ENFORCE(beta1_ >= 0.0f && beta1_ < 1.0f && beta2_ >= 0.0f && beta2_ < 1.0f,
                kInvalidArgument, "adam: beta1 = ", beta1_, " and beta2 = ", beta2_,
                ", expected both in [0, 1)");
}

Op Adam::MakeUpdate(const Update& update) const {
  const std::vector<int64_t>& dims = update.parameter.dims;
  Op op = UpdateOp("adam", update.parameter.name, update.gradient, update.learning_rate);
  SetInPlace(&op, "Moment1", Accumulator(update, "moment1", dims, 0.0));
  SetInPlace(&op, "Moment2", Accumulator(update, "moment2", dims, 0.0));
  SetInPlace(&op, "Beta1Pow", Accumulator(update, "beta1_pow_acc", {1}, beta1_));
  SetInPlace(&op, "Beta2Pow", Accumulator(update, "beta2_pow_acc", {1}, beta2_));
  op.SetAttr("beta1", beta1_).SetAttr("beta2", beta2_).SetAttr("epsilon", epsilon_);
  op.SetAttr("lazy_mode", lazy_mode_);
  return op;
}

}  // namespace skiff::optimizer
