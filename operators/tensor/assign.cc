// assign and memcpy: Out = X.
//
// Source: Fluid's assign. Its gradient is an assign from Out@GRAD to X@GRAD. In Fluid, X
// may be absent if a branch did not run, and Out then stays unchanged.
//
// PaddlePaddle's memcpy copies to the memory of another place: its mixed precision has a flag on
// the host before Adam reads it. A plan of Skiff copies values between places where need be.
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

OpDef CopyDef(StaticText type) {
  OpDef def;
  def.type = type;
  def.doc = "Out[i] = X[i].";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "A copy of X."}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = Precision::kFollow;
  def.grad = [](const GradContext& context) {
    Op grad(context.forward().type);
    grad.attrs = context.forward().attrs;
    grad.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
    return std::vector<Op>{std::move(grad)};
  };
  // The kernel copies bytes, so a copy in any layout, padding included, is right if both sides have
  // the same one.
  def.kernel_dtype_slot = "Out";
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  def.zero_preserving = true;
  def.elementwise = true;
  return def;
}

}  // namespace

void RegisterAssign(OpRegistry& registry) {
  registry.Add(CopyDef("assign"));
  OpDef memcpy = CopyDef("memcpy");
  memcpy.attrs = {{.name = "dst_place_type",
                   .type = AttrType::kInt,
                   .default_value = int32_t{-1},
                   .doc = "Where PaddlePaddle puts Out; nothing depends on it."}};
  registry.Add(std::move(memcpy));
  for (const char* type : {"assign", "memcpy"}) {
    AddKernelsForAllDTypes(registry, type, CopyFactory("X", "Out"), [](const OpContext& context) {
      return context.Input("X").layout == context.Output("Out").layout;
    });
  }
}

}  // namespace skiff
