// assign: Out = X.
//
// Source: Fluid's assign. Its gradient is an assign from Out@GRAD to X@GRAD. Without X (a branch
// that did not run, in Fluid) Out stays as it is.
#include "operators/tensor/data_movement_shared.h"
#include "operators/tensor/strided_copy_shared.h"

namespace skiff {

void RegisterAssign(OpRegistry& registry) {
  OpDef def;
  def.type = "assign";
  def.doc = "Out[i] = X[i]. Without X, Out keeps its value.";
  def.inputs = {{.name = "X", .doc = "Any tensor.", .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "A copy of X."}};
  def.infer = [](OpContext& context) {
    if (context.HasInput("X")) context.SetOutputLike("Out", "X");
  };
  def.grad = [](const GradContext& context) {
    if (context.Input("X").empty()) return std::vector<Op>{};
    Op grad("assign");
    grad.attrs = context.forward().attrs;
    grad.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
    return std::vector<Op>{std::move(grad)};
  };
  def.kernel_dtype_slot = "Out";
  def.in_place = {{"X", "Out"}};
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  def.zero_preserving = true;
  def.elementwise = true;
  registry.Add(std::move(def));
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    registry.AddKernel("assign", KernelDef{.dtype = dtype,
                                           .prepare = CopyFactory("X", "Out"),
                                           .accepts = [](const OpContext& context) {
                                             return !context.HasInput("X") ||
                                                    context.Input("X").layout ==
                                                        context.Output("Out").layout;
                                           }});
  }
}

}  // namespace skiff
