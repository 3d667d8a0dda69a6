// sgd: ParamOut = Param - LearningRate * Grad.
//
// Source: Fluid's sgd.
#include "operators/optimizer/optimizer_slots_shared.h"
#include "operators/optimizer/update_loops_shared.h"

namespace skiff {
namespace {

void InferSgd(OpContext& context) {
  RejectMultiPrecision(context);
  CheckLikeParam(context, "Grad");
  CheckScalar(context, "LearningRate");
  context.SetOutputLike("ParamOut", "Param");
}

template <typename T>
std::unique_ptr<Kernel> PrepareSgd(PrepareContext& context) {
  return MakeKernel([param = context.InputIndex("Param"), grad = context.InputIndex("Grad"),
                     rate = context.InputIndex("LearningRate"),
                     param_out = context.OutputIndex("ParamOut")](const KernelContext& run) {
    const SgdArrays<T> arrays{run.input(param).data<T>(), run.input(grad).data<T>(),
                              run.output(param_out).data<T>()};
    SgdUpdate(arrays, run.input(param).element_count(), ScalarOf(run.input(rate)));
  });
}

}  // namespace

void RegisterSgd(OpRegistry& registry) {
  OpDef def;
  def.type = "sgd";
  def.doc = "ParamOut = Param - LearningRate * Grad.";
  def.inputs = {ParamSlot(), LearningRateSlot(), GradSlot(), MasterParamSlot()};
  def.outputs = {ParamOutSlot(), MasterParamOutSlot()};
  def.attrs = {MultiPrecisionAttr()};
  def.infer = InferSgd;
  def.no_gradient_reason = kNoOptimizerGradient;
  def.kernel_dtype_slot = "Param";
  def.in_place = {{"Param", "ParamOut"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sgd", []<typename T>(PrepareContext& context) { return PrepareSgd<T>(context); });
}

}  // namespace skiff
