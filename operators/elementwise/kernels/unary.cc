#include "operators/elementwise/kernels/unary.h"

#include <utility>
#include <variant>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

AttrDef AttrOf(const FormulaNumber& number) {
  AttrDef attr{.name = number.name, .type = AttrType::kFloat, .doc = number.doc};
  if (number.is_bool) {
    attr.type = AttrType::kBool;
    attr.default_value = number.default_value != 0;
    return attr;
  }
  attr.default_value = number.default_value;
  switch (number.range) {
    case NumberRange::kAny:
      break;
    case NumberRange::kPositive:
      attr.accepts = [](const Attribute& value) { return std::get<float>(value) > 0; };
      attr.expected = "more than 0";
      break;
    case NumberRange::kNotNegative:
      attr.accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; };
      attr.expected = "at least 0";
      break;
    case NumberRange::kNotZero:
      attr.accepts = [](const Attribute& value) { return std::get<float>(value) != 0; };
      attr.expected = "a number other than 0";
      break;
  }
  return attr;
}

}  // namespace

OpDef UnaryOpDef(const UnaryFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = "The operand, of any shape."}};
  def.outputs = {{.name = "Out", .doc = "The result, of X's shape."}};
  for (const FormulaNumber& number : facts.numbers) {
    if (!number.name.empty()) def.attrs.push_back(AttrOf(number));
  }
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = facts.needs_float32 ? Precision::kHigh : Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  def.elementwise = true;
  def.zero_preserving = facts.zero_preserving;
  // A blocked layout pads channels with zeros, and these must remain zeros.
  if (facts.zero_preserving) {
    def.layout_rule = LayoutRule::kSame;
    def.layout_slots = {"X", "Out"};
  }
  return def;
}

UnaryNumbers NumbersOf(const OpContext& context, const UnaryFacts& facts) {
  UnaryNumbers numbers = {};
  for (size_t i = 0; i < numbers.size() && !facts.numbers[i].name.empty(); ++i) {
    const FormulaNumber& number = facts.numbers[i];
    numbers[i] = number.is_bool ? (context.Attr<bool>(number.name) ? 1.0f : 0.0f)
                                : context.Attr<float>(number.name);
  }
  return numbers;
}

void AddUnaryOps(OpRegistry& registry, const UnaryFacts& facts) {
  OpDef def = UnaryOpDef(facts);
  std::vector<GradientRead> reads;
  if (!facts.grad_reads.empty()) reads.push_back({facts.grad_reads, false});
  // Fluid's programs connect the slot that is ignored, although the formula doesn't need it.
  if (!facts.grad_ignores.empty()) reads.push_back(Optional(ForShape(facts.grad_ignores)));
  reads.push_back("Out@GRAD");
  OpDef grad = GradientOf(&def, std::move(reads), {"X@GRAD"});
  grad.doc = facts.grad_doc;
  // Without X, whose shape the gradient has.
  if (facts.grad_reads != "X") {
    grad.infer = [reads = facts.grad_reads, ignores = facts.grad_ignores](OpContext& context) {
      for (const StaticText slot : {reads, ignores}) {
        if (slot.empty() || !context.HasInput(slot)) continue;
        const TensorMeta& saved = context.Input(slot);
        CheckInputLike(context, "Out@GRAD", saved.shape, saved.dtype);
      }
      context.SetOutputLike("X@GRAD", "Out@GRAD");
    };
  }
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  grad.zero_preserving = facts.grad_zero_preserving;
  if (facts.grad_zero_preserving) {
    grad.layout_rule = LayoutRule::kSame;
    grad.layout_slots = {"Out@GRAD", "X@GRAD"};
    if (!facts.grad_reads.empty()) grad.layout_slots.push_back(facts.grad_reads);
  }
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
}

}  // namespace skiff
