#include "operators/math/kernels/softmax_definition.h"

#include <vector>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  // Only to check the attribute.
  SoftmaxAxis(context, context.Input("X").shape);
  context.SetOutputLike("Out", "X");
}

void InferGrad(OpContext& context) {
  const TensorMeta& out = context.Input("Out");
  SoftmaxAxis(context, out.shape);
  CheckInputLike(context, "Out@GRAD", out.shape, out.dtype);
  context.SetOutputLike("X@GRAD", "Out");
}

std::vector<AttrDef> Attributes() {
  return {{.name = "axis",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "The axis of the classes; negative ones count from the back."}};
}

}  // namespace

int SoftmaxAxis(const OpContext& context, const Shape& shape) {
  return AxisIndex(context, shape, context.IntAttr("axis"));
}

OpDef SoftmaxDef(StaticText type, StaticText doc, StaticText out_doc) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {{.name = "X", .doc = "Logits, of any rank; a scalar is one class."}};
  def.outputs = {{.name = "Out", .doc = out_doc}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.in_place = {{"X", "Out"}};
  return def;
}

OpDef SoftmaxGradDef(OpDef* forward, StaticText doc) {
  // It needs only Out, so X's memory can be freed or overwritten after the forward op.
  OpDef def = GradientOf(forward, {"Out", "Out@GRAD"}, {"X@GRAD"});
  def.doc = doc;
  def.infer = InferGrad;
  // Each element of both is read before the same element of X@GRAD is written.
  def.in_place = {{"Out@GRAD", "X@GRAD"}, {"Out", "X@GRAD"}};
  return def;
}

}  // namespace skiff
