// momentum: VelocityOut = mu * Velocity + g, ParamOut = Param - LearningRate * VelocityOut, with
// g = Grad * rescale_grad, plus regularization_coeff * Param with "l2_decay". Nesterov:
// ParamOut = Param - LearningRate * (g + mu * VelocityOut).
//
// Source: Fluid's momentum (and its merged form, from which the order of rescaling and decay is).
#include "operators/optimizer/optimizer_slots_shared.h"
#include "operators/optimizer/update_loops_shared.h"

namespace skiff {
namespace {

void InferMomentum(OpContext& context) {
  RejectMultiPrecision(context);
  CheckLikeParam(context, "Grad");
  CheckLikeParam(context, "Velocity");
  CheckScalar(context, "LearningRate");
  context.SetOutputLike("ParamOut", "Param");
  context.SetOutputLike("VelocityOut", "Param");
}

MomentumSettings SettingsOf(const OpContext& context) {
  const bool decays = context.Attr<std::string>("regularization_method") == "l2_decay";
  return {.mu = context.Attr<float>("mu"),
          .rescale_grad = context.Attr<float>("rescale_grad"),
          .l2_decay = decays ? context.Attr<float>("regularization_coeff") : 0.0,
          .use_nesterov = context.Attr<bool>("use_nesterov")};
}

template <typename T>
std::unique_ptr<Kernel> PrepareMomentum(PrepareContext& context) {
  return MakeKernel([param = context.InputIndex("Param"), grad = context.InputIndex("Grad"),
                     velocity = context.InputIndex("Velocity"),
                     rate = context.InputIndex("LearningRate"),
                     param_out = context.OutputIndex("ParamOut"),
                     velocity_out = context.OutputIndex("VelocityOut"),
                     settings = SettingsOf(context)](const KernelContext& run) mutable {
    const MomentumArrays<T> arrays{run.input(param).data<T>(), run.input(grad).data<T>(),
                                   run.input(velocity).data<T>(), run.output(param_out).data<T>(),
                                   run.output(velocity_out).data<T>()};
    settings.learning_rate = ScalarOf(run.input(rate));
    MomentumUpdate(arrays, run.input(param).element_count(), settings);
  });
}

}  // namespace

void RegisterMomentum(OpRegistry& registry) {
  OpDef def;
  def.type = "momentum";
  def.doc =
      "VelocityOut = mu * Velocity + g; ParamOut = Param - LearningRate * VelocityOut, or "
      "Param - LearningRate * (g + mu * VelocityOut) with use_nesterov; g = Grad * "
      "rescale_grad (+ regularization_coeff * Param with \"l2_decay\").";
  def.inputs = {ParamSlot(),
                GradSlot(),
                {.name = "Velocity", .doc = "The velocity, of Param's shape."},
                LearningRateSlot(),
                MasterParamSlot()};
  def.outputs = {ParamOutSlot(),
                 {.name = "VelocityOut", .doc = "The velocity after the step."},
                 MasterParamOutSlot()};
  def.attrs = {{.name = "mu", .type = AttrType::kFloat, .doc = "The momentum coefficient."},
               BoolAttr("use_nesterov", "Nesterov's form."),
               ChoiceAttr("regularization_method", "", {"", "l2_decay"}, "\"\" or \"l2_decay\"."),
               FloatAttr("regularization_coeff", 0.0f, "The coefficient of \"l2_decay\"."),
               MultiPrecisionAttr(),
               FloatAttr("rescale_grad", 1.0f, "The gradient is multiplied by this first.")};
  def.infer = InferMomentum;
  def.no_gradient_reason = kNoOptimizerGradient;
  def.kernel_dtype_slot = "Param";
  def.in_place = {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "momentum", []<typename T>(PrepareContext& context) { return PrepareMomentum<T>(context); });
}

}  // namespace skiff
