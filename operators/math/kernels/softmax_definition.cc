#include "operators/math/kernels/softmax_definition.h"

#include <vector>

#include "framework/base/str_cat.h"
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
  // The gradient needs only Out, so X's memory can be freed or overwritten after the forward op.
  def.grad = GradOp(StrCat(type, "_grad"), {"Out", "Out@GRAD"}, {"X@GRAD"});
  def.in_place = {{"X", "Out"}};
  return def;
}

OpDef SoftmaxGradDef(StaticText type, StaticText doc) {
  OpDef def;
  def.type = StrCat(type, "_grad");
  def.doc = doc;
  def.inputs = {{.name = "Out", .doc = StrCat("The output of ", type, ".")},
                {.name = "Out@GRAD", .doc = "Its gradient."}};
  def.outputs = {{.name = "X@GRAD", .doc = "Of Out's shape."}};
  def.attrs = Attributes();
  def.infer = InferGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  // Each element of both is read before the same element of X@GRAD is written.
  def.in_place = {{"Out@GRAD", "X@GRAD"}, {"Out", "X@GRAD"}};
  return def;
}

}  // namespace skiff
