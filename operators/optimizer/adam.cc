// adam: Moment1Out = b1 * Moment1 + (1 - b1) * Grad, Moment2Out = b2 * Moment2 + (1 - b2) * Grad²,
// ParamOut = Param - LearningRate * m / (sqrt(v) + epsilon) with the moments freed of their bias,
// m = Moment1Out / (1 - Beta1Pow), v = Moment2Out / (1 - Beta2Pow).
//
// Source: Kingma & Ba 2015, algorithm 1, in the form of Fluid 2.x, which folds the corrections into
// step size and epsilon: lr * sqrt(1 - Beta2Pow) / (1 - Beta1Pow) and epsilon * sqrt(1 - Beta2Pow).
// Beta1Pow holds b1^t in step t (b1 in the first). Beta1PowOut = Beta1Pow * b1 unless
// use_global_beta_pow, where the program advances the powers itself. With SkipUpdate true nothing
// changes. lazy_mode concerns sparse gradients only.
#include <cmath>

#include "framework/base/error.h"
#include "operators/common/input_checks.h"
#include "operators/optimizer/optimizer_slots_shared.h"
#include "operators/optimizer/update_loops_shared.h"

namespace skiff {
namespace {

void InferAdam(OpContext& context) {
  RejectMultiPrecision(context);
  for (const char* slot : {"Grad", "Moment1", "Moment2"}) CheckLikeParam(context, slot);
  for (const char* slot :
       {"LearningRate", "Beta1Pow", "Beta2Pow", "Beta1Tensor", "Beta2Tensor", "EpsilonTensor"}) {
    CheckScalar(context, slot);
  }
  if (context.HasInput("SkipUpdate")) {
    const TensorMeta& skip = context.Input("SkipUpdate");
    CheckOneElement(context, "SkipUpdate");
    SKIFF_ENFORCE(skip.dtype == DType::kBool, kInvalidArgument, "adam: SkipUpdate is ", skip.dtype,
                  ", expected bool");
  }
  for (const char* slot : {"ParamOut", "Moment1Out", "Moment2Out"}) {
    context.SetOutputLike(slot, "Param");
  }
  context.SetOutputLike("Beta1PowOut", "Beta1Pow");
  context.SetOutputLike("Beta2PowOut", "Beta2Pow");
}

void SetScalar(double value, Tensor* tensor) {
  if (tensor->dtype() == DType::kFloat64) {
    *tensor->data<double>() = value;
  } else {
    *tensor->data<float>() = static_cast<float>(value);
  }
}

// A value that is an attribute unless a tensor overrides it.
struct Coefficient {
  Coefficient(const OpContext& context, const char* attr, const char* slot)
      : attribute(context.Attr<float>(attr)), input(context.InputIndex(slot)) {}
  double Value(const KernelContext& run) const {
    return input < 0 ? attribute : ScalarOf(run.input(input));
  }

  double attribute;
  int input;
};

// An input, the output that follows it, and what their names are.
struct State {
  State(const OpContext& context, const std::string& slot)
      : in(context.InputIndex(slot)), out(context.OutputIndex(slot + "Out")) {}
  void Keep(const KernelContext& run) const {
    if (out >= 0) CopyTensor(run.input(in), &run.output(out));
  }

  int in;
  int out;
};

template <typename T>
class AdamKernel final : public Kernel {
 public:
  explicit AdamKernel(const PrepareContext& context)
      : param_(context, "Param"),
        moment1_(context, "Moment1"),
        moment2_(context, "Moment2"),
        beta1_pow_(context, "Beta1Pow"),
        beta2_pow_(context, "Beta2Pow"),
        grad_(context.InputIndex("Grad")),
        rate_(context.InputIndex("LearningRate")),
        skip_(context.InputIndex("SkipUpdate")),
        beta1_(context, "beta1", "Beta1Tensor"),
        beta2_(context, "beta2", "Beta2Tensor"),
        epsilon_(context, "epsilon", "EpsilonTensor"),
        global_pow_(context.Attr<bool>("use_global_beta_pow")) {}

  void Run(const KernelContext& run) override {
    if (skip_ >= 0 && run.input(skip_).Item<bool>()) {
      for (const State* state : {&param_, &moment1_, &moment2_, &beta1_pow_, &beta2_pow_}) {
        state->Keep(run);
      }
      return;
    }
    const double beta1 = beta1_.Value(run);
    const double beta2 = beta2_.Value(run);
    const double beta1_pow = ScalarOf(run.input(beta1_pow_.in));
    const double beta2_pow = ScalarOf(run.input(beta2_pow_.in));
    const double correction = std::sqrt(1.0 - beta2_pow);
    const AdamSettings settings{
        .beta1 = beta1,
        .beta2 = beta2,
        .step_size = ScalarOf(run.input(rate_)) * correction / (1.0 - beta1_pow),
        .epsilon = epsilon_.Value(run) * correction};
    const AdamArrays<T> arrays{
        run.input(param_.in).data<T>(),    run.input(grad_).data<T>(),
        run.input(moment1_.in).data<T>(),  run.input(moment2_.in).data<T>(),
        run.output(param_.out).data<T>(),  run.output(moment1_.out).data<T>(),
        run.output(moment2_.out).data<T>()};
    AdamUpdate(arrays, run.input(param_.in).element_count(), settings);
    Advance(run, beta1_pow_, beta1_pow * beta1);
    Advance(run, beta2_pow_, beta2_pow * beta2);
  }

 private:
  void Advance(const KernelContext& run, const State& power, double next) const {
    if (global_pow_) return power.Keep(run);
    if (power.out >= 0) SetScalar(next, &run.output(power.out));
  }

  State param_;
  State moment1_;
  State moment2_;
  State beta1_pow_;
  State beta2_pow_;
  int grad_;
  int rate_;
  int skip_;
  Coefficient beta1_;
  Coefficient beta2_;
  Coefficient epsilon_;
  bool global_pow_;
};

std::vector<SlotDef> AdamInputs() {
  const auto optional = [](const char* name, const char* doc) {
    return SlotDef{.name = name, .doc = doc, .dispensable = true};
  };
  return {ParamSlot(),
          GradSlot(),
          LearningRateSlot(),
          {.name = "Moment1", .doc = "The mean of the gradient, of Param's shape."},
          {.name = "Moment2", .doc = "The mean of its square, of Param's shape."},
          {.name = "Beta1Pow", .doc = "One element: beta1 to the power of the step, from 1 on."},
          {.name = "Beta2Pow", .doc = "One element: beta2 to the power of the step, from 1 on."},
          MasterParamSlot(),
          optional("SkipUpdate", "One bool: whether to leave everything as it is."),
          optional("Beta1Tensor", "One element: goes before the attribute beta1."),
          optional("Beta2Tensor", "One element: goes before the attribute beta2."),
          optional("EpsilonTensor", "One element: goes before the attribute epsilon.")};
}

std::vector<AttrDef> AdamAttrs() {
  return {FloatAttr("beta1", 0.9f, "The decay of Moment1."),
          FloatAttr("beta2", 0.999f, "The decay of Moment2."),
          FloatAttr("epsilon", 1e-8f, "Keeps the quotient finite."),
          BoolAttr("lazy_mode", "Concerns sparse gradients only."),
          {.name = "min_row_size_to_use_multithread",
           .type = AttrType::kLong,
           .default_value = int64_t{1000},
           .doc = "A hint of Fluid's; ignored."},
          MultiPrecisionAttr(),
          BoolAttr("use_global_beta_pow", "The program advances the powers, not this op.")};
}

}  // namespace

void RegisterAdam(OpRegistry& registry) {
  OpDef def;
  def.type = "adam";
  def.doc =
      "Moment1Out = b1 Moment1 + (1 - b1) Grad; Moment2Out = b2 Moment2 + (1 - b2) Grad²; "
      "ParamOut = Param - lr sqrt(1 - Beta2Pow) / (1 - Beta1Pow) * Moment1Out / "
      "(sqrt(Moment2Out) + epsilon sqrt(1 - Beta2Pow)); Beta1PowOut = Beta1Pow b1, "
      "Beta2PowOut = Beta2Pow b2.";
  def.inputs = AdamInputs();
  def.outputs = {ParamOutSlot(),
                 {.name = "Moment1Out", .doc = "Moment1 after the step."},
                 {.name = "Moment2Out", .doc = "Moment2 after the step."},
                 {.name = "Beta1PowOut", .doc = "Beta1Pow for the next step.", .dispensable = true},
                 {.name = "Beta2PowOut", .doc = "Beta2Pow for the next step.", .dispensable = true},
                 MasterParamOutSlot()};
  def.attrs = AdamAttrs();
  def.infer = InferAdam;
  def.no_gradient_reason = kNoOptimizerGradient;
  def.kernel_dtype_slot = "Param";
  def.in_place = {{"Param", "ParamOut"},
                  {"Moment1", "Moment1Out"},
                  {"Moment2", "Moment2Out"},
                  {"Beta1Pow", "Beta1PowOut"},
                  {"Beta2Pow", "Beta2PowOut"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "adam", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AdamKernel<T>>(context);
      });
}

}  // namespace skiff
