// Matches a cross_entropy with the softmax that computes its input, and a cross_entropy_grad with
// the softmax_grad that alone reads its result. A gradient is fused only if its forward ops were
// (losses_).
#include "framework/transpiler/fuse_softmax_loss_pass.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/transpiler/plan_rewrite.h"

namespace skiff {
namespace {

class Fusion {
 public:
  Fusion(const PassContext& context, Plan* plan)
      : plan_(*plan),
        forward_def_(context.registry.Find("softmax_with_cross_entropy")),
        backward_def_(context.registry.Find("softmax_with_cross_entropy_grad")),
        rewrite_(context, plan) {}

  int64_t Run() {
    if (forward_def_ == nullptr || backward_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "cross_entropy")) TryForward(i);
      if (rewrite_.Is(i, "cross_entropy_grad")) TryBackward(i);
    }
    return rewrite_.Apply();
  }

 private:
  static constexpr size_t kNobody = PlanRewrite::kNobody;

  static AttributeMap AttrsOf(const Instruction& loss) {
    AttributeMap attrs;
    for (const char* name : {"soft_label", "ignore_index"}) {
      attrs[name] = *EffectiveAttr(*loss.op, *loss.def->FindAttr(name));
    }
    return attrs;
  }

  bool IsAlongLastAxis(const Instruction& softmax, int rank) const {
    const int64_t axis = ContextOf(plan_, softmax).IntAttr("axis");
    return axis == -1 || axis == rank - 1;
  }

  void TryForward(size_t at) {
    const Instruction& loss = plan_.instructions[at];
    const ValueId p = loss.InputIn("X");
    const ValueId label = loss.InputIn("Label");
    const size_t from = rewrite_.WriterOf(p);
    // Of several losses on one softmax only the first is fused: the softmax is gone then.
    if (from == kNobody || !rewrite_.Is(from, "softmax") || losses_.contains(p)) return;
    const Instruction& softmax = plan_.instructions[from];
    const int rank = rewrite_.ShapeOf(p).rank();
    // The fused op runs where the softmax did, since p may have other readers in between. So the
    // label must be there by then.
    const size_t label_writer = rewrite_.WriterOf(label);
    const bool has_label = label_writer == kNobody || label_writer < from;
    if (!IsAlongLastAxis(softmax, rank) || rewrite_.ShapeOf(label).rank() != rank || !has_label ||
        WritesScopeOf(plan_, {label, loss.OutputIn("Y")}, from, at)) {
      return;
    }
    Instruction fused = MakeInstruction(
        &plan_, *forward_def_, softmax, AttrsOf(loss),
        {{"Logits", softmax.InputIn("X")}, {"Label", label}},
        {{"Softmax", rewrite_.OnlyReader(p) == at ? ValueId() : p}, {"Loss", loss.OutputIn("Y")}});
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(from, std::move(fused));
    rewrite_.Drop(at);
    losses_[p] = at;
  }

  void TryBackward(size_t loss_grad) {
    const Instruction& outer = plan_.instructions[loss_grad];
    const ValueId p = outer.InputIn("X");
    const auto found = losses_.find(p);
    const size_t at = rewrite_.OnlyReader(outer.OutputIn("X@GRAD"));
    if (found == losses_.end() || at == kNobody || !rewrite_.Is(at, "softmax_grad")) return;
    const Instruction& loss = plan_.instructions[found->second];
    const Instruction& inner = plan_.instructions[at];
    const ValueId label = outer.InputIn("Label");
    // The fused gradient is (p - label) · dy, which is right only for the gradient of this very
    // pair.
    const bool is_its_gradient = inner.InputIn("Out") == p && label == loss.InputIn("Label") &&
                                 AttrsOf(outer) == AttrsOf(loss) &&
                                 IsAlongLastAxis(inner, rewrite_.ShapeOf(p).rank());
    if (!is_its_gradient || WritesScopeOf(plan_, outer.inputs, loss_grad + 1, at)) return;
    Instruction fused =
        MakeInstruction(&plan_, *backward_def_, inner, AttrsOf(outer),
                        {{"Label", label}, {"Softmax", p}, {"Loss@GRAD", outer.InputIn("Y@GRAD")}},
                        {{"Logits@GRAD", inner.OutputIn("X@GRAD")}});
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(at, std::move(fused));
    rewrite_.Drop(loss_grad);
  }

  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  PlanRewrite rewrite_;
  std::map<ValueId, size_t> losses_;  // fused cross-entropies, by the softmax's output
};

// Losses whose Softmax nobody but their gradient reads.
class Skipping {
 public:
  Skipping(const PassContext& context, Plan* plan) : plan_(*plan), rewrite_(context, plan) {}

  int64_t Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (IsLossOfClasses(i)) TryLoss(i);
    }
    return rewrite_.Apply();
  }

 private:
  bool IsLossOfClasses(size_t i) const {
    if (!rewrite_.Is(i, "softmax_with_cross_entropy")) return false;
    const OpContext loss = ContextOf(plan_, plan_.instructions[i]);
    return !loss.Attr<bool>("soft_label") && !loss.Attr<bool>("skip_ignored");
  }

  void TryLoss(size_t at) {
    const Instruction& loss = plan_.instructions[at];
    const ValueId softmax = loss.OutputIn("Softmax");
    // Without one, as in evaluation, nobody can read what is skipped.
    if (!softmax) return Mark(at);
    if (plan_[softmax].storage != Storage::kArena || plan_[softmax].is_checkpoint) return;
    const std::vector<size_t>& readers = rewrite_.ReadersOf(softmax);
    if (!std::ranges::all_of(readers, [&](size_t i) { return IsGradientOf(i, loss); })) return;
    Mark(at);
    for (const size_t reader : readers) Mark(reader);
  }

  bool IsGradientOf(size_t i, const Instruction& loss) const {
    if (i >= plan_.instructions.size() || !rewrite_.Is(i, "softmax_with_cross_entropy_grad")) {
      return false;
    }
    const Instruction& gradient = plan_.instructions[i];
    const auto ignored = [&](const Instruction& of) {
      return ContextOf(plan_, of).IntAttr("ignore_index");
    };
    return gradient.InputIn("Softmax") == loss.OutputIn("Softmax") &&
           gradient.InputIn("Label") == loss.InputIn("Label") &&
           !ContextOf(plan_, gradient).Attr<bool>("soft_label") &&
           ignored(gradient) == ignored(loss);
  }

  // The same instruction with skip_ignored.
  void Mark(size_t at) {
    const Instruction& from = plan_.instructions[at];
    AttributeMap attrs = from.op->attrs;
    attrs["skip_ignored"] = true;
    SlotValues inputs;
    SlotValues outputs;
    for (const SlotDef& slot : from.def->inputs) {
      inputs.emplace_back(slot.name, from.InputIn(slot.name));
    }
    for (const SlotDef& slot : from.def->outputs) {
      outputs.emplace_back(slot.name, from.OutputIn(slot.name));
    }
    rewrite_.Replace(at, MakeInstruction(&plan_, *from.def, from, attrs, inputs, outputs));
  }

  Plan& plan_;
  PlanRewrite rewrite_;
};

}  // namespace

PassReport FuseSoftmaxLossPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = Fusion(context, plan).Run();
  const int64_t skipping = Skipping(context, plan).Run();
  return {.pass = {},
          .changes = made + skipping,
          .summary = StrCat(made, " instructions fused, ", skipping, " skip ignored items")};
}

}  // namespace skiff
