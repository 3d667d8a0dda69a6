#include "operators/elementwise/kernels/unary.h"

#include <utility>

#include "framework/base/str_cat.h"
#include "framework/op/grad.h"
#include "operators/common/input_checks.h"

namespace skiff {

OpDef UnaryOpDef(const UnaryFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = "The operand, of any shape."}};
  def.outputs = {{.name = "Out", .doc = "The result, of X's shape."}};
  def.attrs = facts.attrs;
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
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

OpDef UnaryGradOpDef(const UnaryFacts& facts) {
  OpDef def;
  def.type = StrCat(facts.type, "_grad");
  def.doc = facts.grad_doc;
  if (!facts.grad_reads.empty()) {
    def.inputs.push_back(
        {.name = facts.grad_reads, .doc = StrCat(facts.grad_reads, " of ", facts.type, ".")});
  }
  if (!facts.grad_ignores.empty()) {
    // Fluid's programs connect this slot, although the formula doesn't need it.
    def.inputs.push_back({.name = facts.grad_ignores,
                          .doc = StrCat(facts.grad_ignores, " of ", facts.type, ", not read."),
                          .dispensable = true,
                          .shape_only = true});
  }
  def.inputs.push_back({.name = "Out@GRAD", .doc = "Gradient of Out."});
  def.outputs = {{.name = "X@GRAD", .doc = "Gradient of X."}};
  def.attrs = facts.attrs;
  def.infer = [reads = facts.grad_reads, ignores = facts.grad_ignores](OpContext& context) {
    for (const StaticText slot : {reads, ignores}) {
      if (slot.empty() || !context.HasInput(slot)) continue;
      const TensorMeta& saved = context.Input(slot);
      CheckInputLike(context, "Out@GRAD", saved.shape, saved.dtype);
    }
    context.SetOutputLike("X@GRAD", "Out@GRAD");
  };
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "Out@GRAD";
  def.in_place = {{"Out@GRAD", "X@GRAD"}};
  def.elementwise = true;
  def.zero_preserving = facts.grad_zero_preserving;
  if (facts.grad_zero_preserving) {
    def.layout_rule = LayoutRule::kSame;
    def.layout_slots = {"Out@GRAD", "X@GRAD"};
    if (!facts.grad_reads.empty()) def.layout_slots.push_back(facts.grad_reads);
  }
  return def;
}

void AddUnaryOps(OpRegistry& registry, const UnaryFacts& facts) {
  OpDef def = UnaryOpDef(facts);
  std::vector<StaticText> reads;
  if (!facts.grad_reads.empty()) reads.push_back(facts.grad_reads);
  if (!facts.grad_ignores.empty()) reads.push_back(facts.grad_ignores);
  reads.push_back("Out@GRAD");
  def.grad = GradOp(StrCat(facts.type, "_grad"), std::move(reads), {"X@GRAD"});
  registry.Add(std::move(def));
  registry.Add(UnaryGradOpDef(facts));
}

}  // namespace skiff
