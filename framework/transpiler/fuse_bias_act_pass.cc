// An addition of a vector along the channels and the relu after it become bias_act, and likewise
// their gradients. The relu's gradient needs only the sign of its output, so the sum isn't kept.
// What is gained is a pass over memory in each direction and, more important after convolutions,
// that bias_act takes blocked tensors.
#include "framework/transpiler/fuse_bias_act_pass.h"

#include <map>
#include <optional>
#include <string>
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
        forward_def_(context.registry.Find("bias_act")),
        backward_def_(context.registry.Find("bias_act_grad")),
        gelu_def_(context.registry.Find("bias_gelu")),
        gelu_grad_def_(context.registry.Find("bias_gelu_grad")),
        rewrite_(context, plan) {}

  int64_t Run() {
    const bool has_relu = forward_def_ != nullptr && backward_def_ != nullptr;
    const bool has_gelu = gelu_def_ != nullptr && gelu_grad_def_ != nullptr;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (has_relu && rewrite_.Is(i, "relu")) TryForward(i);
      if (has_relu && rewrite_.Is(i, "relu_grad")) TryBackward(i);
      if (has_gelu && rewrite_.Is(i, "gelu")) TryGelu(i);
    }
    return rewrite_.Apply();
  }

 private:
  static constexpr size_t kNobody = PlanRewrite::kNobody;

  // Returns the attributes of the fused op if the addition (or its gradient) adds a bias to a
  // tensor of shape `x`, or none.
  std::optional<AttributeMap> AttrsFor(const Instruction& add, const Shape& x) const {
    const Shape& bias = rewrite_.ShapeOf(add.InputIn("Y"));
    // What bias_act takes.
    if (x.rank() < 2 || x.rank() > 5 || bias.rank() != 1) return std::nullopt;
    const int64_t given = ContextOf(plan_, add).IntAttr("axis");
    const int64_t axis = given == -1 ? x.rank() - 1 : given;
    if ((axis != 1 && axis != x.rank() - 1) || bias[0] != x[static_cast<int>(axis)]) {
      return std::nullopt;
    }
    return AttributeMap{{"data_layout", std::string(axis == 1 ? "NCHW" : "NHWC")},
                        {"act_type", std::string("relu")}};
  }

  void TryForward(size_t relu) {
    const ValueId sum = plan_.instructions[relu].InputIn("X");
    const size_t at = rewrite_.WriterOf(sum);
    if (at == kNobody || !rewrite_.Is(at, "elementwise_add") || rewrite_.OnlyReader(sum) != relu) {
      return;
    }
    const Instruction& add = plan_.instructions[at];
    const std::optional<AttributeMap> attrs = AttrsFor(add, rewrite_.ShapeOf(sum));
    // If X were broadcast, too, the sum would have another shape. The fused op runs at the relu, so
    // X and the bias mustn't be overwritten before that.
    if (!attrs || rewrite_.ShapeOf(add.InputIn("X")) != rewrite_.ShapeOf(sum) ||
        WritesScopeOf(plan_, add.inputs, at + 1, relu)) {
      return;
    }
    const ValueId out = plan_.instructions[relu].OutputIn("Out");
    Instruction fused =
        MakeInstruction(&plan_, *forward_def_, add, *attrs,
                        {{"X", add.InputIn("X")}, {"Bias", add.InputIn("Y")}}, {{"Out", out}});
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(relu, std::move(fused));
    rewrite_.Drop(at);
    // Only gradients of a forward op that was fused are fused: they read its output instead of the
    // sum.
    biases_[out] = add.InputIn("Y");
  }

  void TryBackward(size_t relu_grad) {
    const Instruction& outer = plan_.instructions[relu_grad];
    const ValueId out = outer.InputIn("Out");
    const ValueId sum_gradient = outer.OutputIn("X@GRAD");
    const size_t at = rewrite_.OnlyReader(sum_gradient);
    const auto bias = biases_.find(out);
    if (bias == biases_.end() || at == kNobody || !rewrite_.Is(at, "elementwise_add_grad")) return;
    const Instruction& inner = plan_.instructions[at];
    const std::optional<AttributeMap> attrs = AttrsFor(inner, rewrite_.ShapeOf(out));
    if (!attrs || inner.InputIn("Y") != bias->second || !inner.OutputIn("Y@GRAD") ||
        WritesScopeOf(plan_, outer.inputs, relu_grad + 1, at)) {
      return;
    }
    Instruction fused = MakeInstruction(
        &plan_, *backward_def_, inner, *attrs,
        {{"Out", out}, {"Bias", bias->second}, {"Out@GRAD", outer.InputIn("Out@GRAD")}},
        {{"X@GRAD", inner.OutputIn("X@GRAD")}, {"Bias@GRAD", inner.OutputIn("Y@GRAD")}});
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(at, std::move(fused));
    rewrite_.Drop(relu_grad);
  }

  // Both directions at once: the sum goes only if its gradient does without.
  void TryGelu(size_t gelu) {
    const ValueId sum = plan_.instructions[gelu].InputIn("X");
    const size_t at = rewrite_.WriterOf(sum);
    if (at == kNobody || !rewrite_.Is(at, "elementwise_add")) return;
    const Instruction& add = plan_.instructions[at];
    if (!IsRowBias(add, rewrite_.ShapeOf(sum)) || WritesScopeOf(plan_, add.inputs, at + 1, gelu)) {
      return;
    }
    const std::vector<size_t>& readers = rewrite_.ReadersOf(sum);
    const bool trains = readers.size() == 2 && readers[0] == gelu && MayGo(sum);
    if (!trains && rewrite_.OnlyReader(sum) != gelu) return;
    const Instruction& act = plan_.instructions[gelu];
    Instruction fused = MakeInstruction(&plan_, *gelu_def_, add, GeluAttrs(act),
                                        {{"X", add.InputIn("X")}, {"Bias", add.InputIn("Y")}},
                                        {{"Out", act.OutputIn("Out")}});
    if (!rewrite_.HasKernel(fused)) return;
    if (trains && !TryGeluGrad(add, at, readers[1])) return;
    rewrite_.Replace(gelu, std::move(fused));
    rewrite_.Drop(at);
  }

  // Returns whether the gradients of a bias and of the gelu after it are fused.
  bool TryGeluGrad(const Instruction& add, size_t add_at, size_t gelu_grad) {
    if (gelu_grad >= plan_.instructions.size() || !rewrite_.Is(gelu_grad, "gelu_grad")) {
      return false;
    }
    const Instruction& outer = plan_.instructions[gelu_grad];
    const size_t at = rewrite_.OnlyReader(outer.OutputIn("X@GRAD"));
    if (at == kNobody || !rewrite_.Is(at, "elementwise_add_grad")) return false;
    const Instruction& inner = plan_.instructions[at];
    if (!IsRowBias(inner, rewrite_.ShapeOf(outer.InputIn("X"))) ||
        inner.InputIn("Y") != add.InputIn("Y") || inner.InputIn("X") != add.InputIn("X") ||
        WritesScopeOf(plan_, add.inputs, add_at + 1, at) ||
        WritesScopeOf(plan_, outer.inputs, gelu_grad + 1, at)) {
      return false;
    }
    Instruction fused = MakeInstruction(
        &plan_, *gelu_grad_def_, inner, GeluAttrs(outer),
        {{"X", add.InputIn("X")},
         {"Bias", add.InputIn("Y")},
         {"Out@GRAD", outer.InputIn("Out@GRAD")}},
        {{"X@GRAD", inner.OutputIn("X@GRAD")}, {"Bias@GRAD", inner.OutputIn("Y@GRAD")}});
    if (!rewrite_.HasKernel(fused)) return false;
    rewrite_.Replace(at, std::move(fused));
    rewrite_.Drop(gelu_grad);
    return true;
  }

  static AttributeMap GeluAttrs(const Instruction& gelu) {
    return {{"approximate", *EffectiveAttr(*gelu.op, *gelu.def->FindAttr("approximate"))}};
  }

  // Whether an addition, or its gradient, is that of a vector along the last dim of rows of shape
  // `x`. Images stay apart: bias_gelu takes no blocked layout.
  bool IsRowBias(const Instruction& add, const Shape& x) const {
    return (x.rank() == 2 || x.rank() == 3) && rewrite_.ShapeOf(add.InputIn("X")) == x &&
           rewrite_.AddsToRows(add);
  }

  bool MayGo(ValueId value) const {
    return plan_[value].storage == Storage::kArena && !plan_[value].is_checkpoint;
  }

  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  const OpDef* gelu_def_;
  const OpDef* gelu_grad_def_;
  PlanRewrite rewrite_;
  std::map<ValueId, ValueId> biases_;  // by the output of the fused op
};

}  // namespace

PassReport FuseBiasActPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = Fusion(context, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
