#include "framework/transpiler/fuse_attention_pass.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/transpiler/attention_pattern.h"
#include "framework/transpiler/plan_rewrite.h"

namespace skiff {
namespace {

class AttentionFusion {
 public:
  AttentionFusion(const PassContext& context, Plan* plan)
      : plan_(*plan),
        forward_def_(context.registry.Find("multihead_attention")),
        backward_def_(context.registry.Find("multihead_attention_grad")),
        rewrite_(context, plan) {}

  int64_t Run() {
    if (forward_def_ == nullptr || backward_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "softmax")) TryAt(i);
    }
    return rewrite_.Apply();
  }

 private:
  static constexpr size_t kNobody = PlanUses::kNobody;

  // An attention, and all instructions that it consists of.
  struct Attention {
    AttentionForward forward;
    std::optional<AttentionBackward> backward;
    std::set<size_t> instructions;
    // If the three are cut from one value: that and its gradient.
    ValueId packed;
    ValueId packed_gradient;
  };

  void TryAt(size_t softmax) {
    std::optional<AttentionForward> forward = FindAttention(plan_, rewrite_, softmax);
    if (!forward) return;
    Attention attention{.forward = *std::move(forward)};
    attention.backward = FindAttentionGradient(plan_, rewrite_, attention.forward);
    attention.instructions = attention.forward.instructions;
    if (attention.backward)
      attention.instructions.merge(std::set(attention.backward->instructions));
    FindPacked(&attention);
    if (!MayVanish(attention)) return;
    Replacement fused{.dropped = attention.instructions};
    // Behind all that forward reads, and where the first of the gradients was computed.
    const size_t at = *attention.forward.instructions.rbegin();
    const Instruction& made = fused.made[at] = MakeForward(attention);
    if (attention.backward) {
      fused.made[attention.backward->value_product] = MakeBackward(attention, made);
    }
    rewrite_.TryReplace(std::move(fused));
  }

  // ---- packed

  // Takes in the split that cuts query, key and value from one value, and the concat of their
  // gradients, if both are there or there are no gradients.
  void FindPacked(Attention* attention) const {
    const AttentionForward& forward = attention->forward;
    const size_t split = rewrite_.WriterOf(forward.query);
    if (split == kNobody || !rewrite_.Is(split, "split")) return;
    const Instruction& cut = plan_.instructions[split];
    if (!AreThirds(cut.outputs, {forward.query, forward.key, forward.value},
                   rewrite_.ShapeOf(cut.InputIn("X"))))
      return;
    Attention packed = *attention;
    packed.instructions.insert(split);
    packed.packed = cut.InputIn("X");
    if (attention->backward && !FindPackedGradient(&packed)) return;
    if (MayVanish(packed)) *attention = std::move(packed);
  }

  bool FindPackedGradient(Attention* packed) const {
    const AttentionBackward& backward = *packed->backward;
    const size_t concat = rewrite_.OnlyReader(backward.query_gradient);
    if (concat == kNobody || !rewrite_.Is(concat, "concat")) return false;
    const Instruction& join = plan_.instructions[concat];
    packed->packed_gradient = join.OutputIn("Out");
    packed->instructions.insert(concat);
    return AreThirds(join.inputs,
                     {backward.query_gradient, backward.key_gradient, backward.value_gradient},
                     rewrite_.ShapeOf(packed->packed_gradient));
  }

  // Whether these parts, in this order and no others, are the columns of a value [N, L, 3 C].
  bool AreThirds(std::vector<ValueId> parts, const std::vector<ValueId>& wanted,
                 const Shape& whole) const {
    std::erase(parts, ValueId());
    if (parts != wanted || whole.rank() != 3) return false;
    const Shape& part = rewrite_.ShapeOf(parts[0]);
    return whole[0] == part[0] && whole[1] == part[1] && whole[2] == 3 * part[2];
  }

  // ---- conditions

  std::set<ValueId> ResultsOf(const Attention& attention) const {
    std::set<ValueId> results = {attention.forward.out};
    if (!attention.backward) return results;
    if (attention.packed) {
      results.insert(attention.packed_gradient);
    } else {
      results.insert({attention.backward->query_gradient, attention.backward->key_gradient,
                      attention.backward->value_gradient});
    }
    return results;
  }

  // Whether all that the instructions write is in the arena and no checkpoint, and nobody else
  // reads what isn't a result, not even its shape.
  bool MayVanish(const Attention& attention) const {
    const std::set<ValueId> results = ResultsOf(attention);
    const auto may_go = [&](ValueId value) {
      return !value ||
             (results.contains(value) ? !plan_[value].is_checkpoint
                                      : rewrite_.MayVanishWithShape(value, attention.instructions));
    };
    return std::ranges::all_of(attention.instructions, [&](size_t i) {
      const Instruction& instruction = plan_.instructions[i];
      return rewrite_.WritesArenaOnly(instruction) &&
             std::ranges::all_of(instruction.outputs, may_go);
    });
  }

  // ---- the fused instructions

  AttributeMap AttrsOf(const AttentionForward& forward) const {
    AttributeMap attrs = {{"num_heads", static_cast<int32_t>(forward.heads)},
                          {"scale", static_cast<float>(forward.scale)}};
    if (forward.dropout == kNobody) return attrs;
    const Instruction& dropout = plan_.instructions[forward.dropout];
    for (const char* name : {"dropout_prob", "is_test", "fix_seed", "seed"})
      attrs[name] = *EffectiveAttr(*dropout.op, *dropout.def->FindAttr(name));
    return attrs;
  }

  SlotValues Operands(const Attention& attention) const {
    const AttentionForward& forward = attention.forward;
    if (attention.packed) return {{"Query", attention.packed}, {"Bias", forward.bias}};
    return {{"Query", forward.query},
            {"Key", forward.key},
            {"Value", forward.value},
            {"Bias", forward.bias}};
  }

  ValueId NewValue(const AttentionForward& forward, const char* suffix, const Shape& shape,
                   DType dtype) {
    const std::string name = StrCat(plan_[forward.out].name, suffix);
    return plan_.values.Add(
        {.name = name, .meta = {.shape = shape, .dtype = dtype}, .place = plan_.place});
  }

  // It stands for the dropout, if there is one: the op's id says which weights are dropped.
  Instruction MakeForward(const Attention& attention) {
    const AttentionForward& forward = attention.forward;
    SlotValues outputs = {{"Out", forward.out}};
    if (attention.backward) {
      const Shape& query = rewrite_.ShapeOf(forward.query);
      const Shape rows = {query[0], forward.heads, query[1]};
      const DType of_query = plan_[forward.query].meta.dtype;
      const DType dtype = IsHalf(of_query) ? DType::kFloat32 : of_query;
      outputs.emplace_back("RowMax", NewValue(forward, ".row_max", rows, dtype));
      outputs.emplace_back("RowSum", NewValue(forward, ".row_sum", rows, dtype));
      if (forward.dropout != kNobody)
        outputs.emplace_back("DropoutKey", NewValue(forward, ".dropout_key", {3}, DType::kInt64));
    }
    const size_t origin = forward.dropout != kNobody ? forward.dropout : forward.softmax;
    return MakeInstruction(&plan_, *forward_def_, plan_.instructions[origin], AttrsOf(forward),
                           Operands(attention), outputs);
  }

  Instruction MakeBackward(const Attention& attention, const Instruction& made) {
    const AttentionBackward& backward = *attention.backward;
    SlotValues inputs = Operands(attention);
    for (const char* slot : {"Out", "RowMax", "RowSum", "DropoutKey"})
      inputs.emplace_back(slot, made.OutputIn(slot));
    inputs.emplace_back("Out@GRAD", backward.out_gradient);
    SlotValues outputs = {{"Query@GRAD", attention.packed_gradient}};
    if (!attention.packed) {
      outputs = {{"Query@GRAD", backward.query_gradient},
                 {"Key@GRAD", backward.key_gradient},
                 {"Value@GRAD", backward.value_gradient}};
    }
    return MakeInstruction(&plan_, *backward_def_, plan_.instructions[backward.value_product],
                           made.op->attrs, inputs, outputs);
  }

  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  PlanRewrite rewrite_;
};

}  // namespace

PassReport FuseAttentionPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = AttentionFusion(context, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
