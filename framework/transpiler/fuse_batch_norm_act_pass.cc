// Looks for relu and relu_grad and walks back through writers that have one reader. The fused
// forward instruction takes the place of the relu, where all its inputs are there. The fused
// gradient takes the place of the addition's gradient, or without an addition that of the batch
// norm's. A gradient is fused only if its forward instructions were.
#include "framework/transpiler/fuse_batch_norm_act_pass.h"

#include <algorithm>
#include <map>
#include <optional>
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
        forward_def_(context.registry.Find("batch_norm_act")),
        backward_def_(context.registry.Find("batch_norm_act_grad")),
        rewrite_(context, plan) {}

  int64_t Run() {
    if (forward_def_ == nullptr || backward_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "relu")) TryForward(i);
      if (rewrite_.Is(i, "relu_grad")) TryBackward(i);
    }
    return rewrite_.Apply();
  }

 private:
  static constexpr size_t kNobody = PlanRewrite::kNobody;
  // What a fused forward instruction was made of.
  struct Forward {
    size_t norm = 0;
    size_t at = 0;  // its position
    size_t add = kNobody;
    ValueId sum;  // what the addition read besides the normalized value
  };

  // Returns the batch norm whose output is `value`, if only instruction `reader` reads that.
  size_t NormFor(ValueId value, size_t reader) const {
    const size_t norm = rewrite_.WriterOf(value);
    if (norm == kNobody || !rewrite_.Is(norm, "batch_norm") || rewrite_.OnlyReader(value) != reader)
      return kNobody;
    return plan_.instructions[norm].OutputIn("Y") == value ? norm : kNobody;
  }

  void TryForward(size_t relu) {
    const ValueId x = plan_.instructions[relu].InputIn("X");
    Forward forward{.norm = NormFor(x, relu), .at = relu};
    if (forward.norm == kNobody) {
      const size_t add = rewrite_.WriterOf(x);
      if (add == kNobody || !rewrite_.Is(add, "elementwise_add") || rewrite_.OnlyReader(x) != relu)
        return;
      FindOperand(add, &forward);
      if (forward.norm == kNobody) return;
      forward.add = add;
    }
    if (!MayMove(forward)) return;
    const Instruction& norm = plan_.instructions[forward.norm];
    SlotValues inputs = {{"Z", forward.sum}};
    for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor"}) {
      inputs.emplace_back(slot, norm.InputIn(slot));
    }
    const ValueId y = plan_.instructions[relu].OutputIn("Out");
    SlotValues outputs = {{"Y", y}};
    for (const char* slot :
         {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace"}) {
      outputs.emplace_back(slot, norm.OutputIn(slot));
    }
    Instruction fused =
        MakeInstruction(&plan_, *forward_def_, norm, norm.op->attrs, inputs, outputs);
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(relu, std::move(fused));
    rewrite_.Drop(forward.norm);
    if (forward.add != kNobody) rewrite_.Drop(forward.add);
    forwards_[y] = forward;
  }

  // Finds the operand of the addition that a batch norm made. If both are, takes the later batch
  // norm, since the fused instruction needs the other operand to be computed.
  void FindOperand(size_t add, Forward* forward) const {
    const Instruction& instruction = plan_.instructions[add];
    const ValueId operands[] = {instruction.InputIn("X"), instruction.InputIn("Y")};
    if (!operands[0] || !operands[1] || operands[0] == operands[1] ||
        rewrite_.ShapeOf(operands[0]) != rewrite_.ShapeOf(operands[1])) {
      return;
    }
    for (int k = 0; k < 2; ++k) {
      const size_t norm = NormFor(operands[k], add);
      if (norm == kNobody || (forward->norm != kNobody && norm < forward->norm)) continue;
      forward->norm = norm;
      forward->sum = operands[1 - k];
    }
  }

  // Returns whether the batch norm may run where the relu does: nothing reads what it saves before
  // that, and nothing in between writes a variable that it uses.
  bool MayMove(const Forward& forward) const {
    const Instruction& norm = plan_.instructions[forward.norm];
    std::vector<ValueId> touched = norm.inputs;
    touched.push_back(forward.sum);
    for (ValueId output : norm.outputs) {
      touched.push_back(output);
      if (!output || output == norm.OutputIn("Y")) continue;
      const std::vector<size_t>& readers = rewrite_.ReadersOf(output);
      if (!readers.empty() && readers.front() <= forward.at) return false;
    }
    return !WritesScopeOf(plan_, touched, forward.norm + 1, forward.at);
  }

  void TryBackward(size_t relu_grad) {
    const Instruction& outer = plan_.instructions[relu_grad];
    const auto found = forwards_.find(outer.InputIn("Out"));
    if (found == forwards_.end()) return;
    const Forward& forward = found->second;
    ValueId gradient = outer.OutputIn("X@GRAD");
    size_t at = rewrite_.OnlyReader(gradient);
    if (at == kNobody) return;
    std::optional<size_t> add_grad;
    ValueId sum_gradient;
    if (forward.sum) {
      if (!rewrite_.Is(at, "elementwise_add_grad")) return;
      add_grad = at;
      const Instruction& add = plan_.instructions[at];
      const bool norm_is_x = add.InputIn("Y") == forward.sum;
      gradient = add.OutputIn(norm_is_x ? "X@GRAD" : "Y@GRAD");
      sum_gradient = add.OutputIn(norm_is_x ? "Y@GRAD" : "X@GRAD");
    }
    const size_t norm_grad = rewrite_.OnlyReader(gradient);
    if (norm_grad == kNobody || !rewrite_.Is(norm_grad, "batch_norm_grad")) return;
    if (!IsGradientOf(norm_grad, forward)) return;
    // The fused instruction must run where the addition's gradient did: what that passes on (dz)
    // may be read before the batch norm's gradient runs.
    if (add_grad) at = *add_grad;
    const Instruction& inner = plan_.instructions[norm_grad];
    if (WritesScopeOf(plan_, inner.inputs, forward.at, at) ||
        WritesScopeOf(plan_, outer.inputs, relu_grad + 1, at) || !WritesArenaOnly(inner)) {
      return;
    }
    // Without an addition, the sign of the batch norm's output follows from X, so Y needn't be
    // kept. With one it depends on the sum, which only Y shows.
    SlotValues inputs = {{"Y@GRAD", outer.InputIn("Out@GRAD")},
                         {"Y", forward.sum ? outer.InputIn("Out") : ValueId()}};
    for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance", "MeanOut", "VarianceOut",
                             "SavedMean", "SavedVariance", "ReserveSpace"}) {
      inputs.emplace_back(slot, inner.InputIn(slot));
    }
    SlotValues outputs = {{"Z@GRAD", sum_gradient}};
    for (const char* slot : {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}) {
      outputs.emplace_back(slot, inner.OutputIn(slot));
    }
    Instruction fused =
        MakeInstruction(&plan_, *backward_def_, inner, inner.op->attrs, inputs, outputs);
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(at, std::move(fused));
    rewrite_.Drop(relu_grad);
    rewrite_.Drop(norm_grad);
  }

  // Returns whether a batch_norm_grad is the gradient of the fused batch norm: it reads what that
  // read and saved, with the same attributes.
  bool IsGradientOf(size_t norm_grad, const Forward& forward) const {
    const Instruction& inner = plan_.instructions[norm_grad];
    const Instruction& norm = plan_.instructions[forward.norm];
    const auto reads = [&](const char* slot, ValueId value) {
      return inner.InputIn(slot) == value;
    };
    return reads("X", norm.InputIn("X")) && reads("Scale", norm.InputIn("Scale")) &&
           reads("Bias", norm.InputIn("Bias")) &&
           (reads("SavedMean", norm.OutputIn("SavedMean")) ||
            reads("MeanOut", norm.OutputIn("MeanOut"))) &&
           std::ranges::all_of(inner.def->attrs, [&](const AttrDef& attr) {
             return SameAttribute(*EffectiveAttr(*inner.op, attr), *EffectiveAttr(*norm.op, attr));
           });
  }

  bool WritesArenaOnly(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
      return !output || plan_[output].storage == Storage::kArena;
    });
  }

  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  PlanRewrite rewrite_;
  std::map<ValueId, Forward> forwards_;  // by the output of the relu
};

}  // namespace

PassReport FuseBatchNormActPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = Fusion(context, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
