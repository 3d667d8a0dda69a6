// With running statistics, a batch norm is y = a · c + b by channel, with a = scale / sqrt(variance
// + epsilon) and b = bias - a · mean. So conv2d(x, w) followed by it is conv2d(x, a · w) + b. The
// scaled filter is a derived form, which the kernel makes once as long as the parameters don't
// change. If an instruction of the plan writes them, it would be made in every run; hence the
// checks over the whole plan.
#include "framework/transpiler/fold_batch_norm_pass.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/running_state.h"
#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/transpiler/plan_rewrite.h"

namespace skiff {
namespace {

class Folding {
 public:
  Folding(const PassContext& context, Plan* plan)
      : plan_(*plan),
        def_(context.registry.Find("conv2d_batch_norm_act")),
        rewrite_(context, plan) {}

  int64_t Run() {
    if (def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "batch_norm") || rewrite_.Is(i, "batch_norm_act")) TryFold(i);
    }
    return rewrite_.Apply();
  }

 private:
  template <typename T>
  static T AttrOf(const Instruction& instruction, std::string_view name) {
    return std::get<T>(*EffectiveAttr(*instruction.op, *instruction.def->FindAttr(name)));
  }

  const PlanValue& Value(ValueId value) const { return plan_[value]; }

  // Returns whether the outputs of the batch norm other than Y may stay unwritten. It has none for
  // statistics that it doesn't change, unless they are to be copied to another variable.
  bool WritesNothingElse(const Instruction& norm) const {
    return std::ranges::all_of(norm.outputs, [&](ValueId output) {
      const bool is_read = output && !rewrite_.ReadersOf(output).empty();
      return !output || output == norm.OutputIn("Y") ||
             (!is_read && Value(output).storage == Storage::kArena);
    });
  }

  void TryFold(size_t at) {
    const Instruction& norm = plan_.instructions[at];
    const ValueId x = norm.InputIn("X");
    const size_t from = rewrite_.WriterOf(x);
    if (from == PlanRewrite::kNobody || !rewrite_.Is(from, "conv2d") ||
        rewrite_.OnlyReader(x) != at || UpdatesRunningState(*norm.def, *norm.op) ||
        !WritesNothingElse(norm)) {
      return;
    }
    const Instruction& convolution = plan_.instructions[from];
    const bool channels_last = AttrOf<std::string>(convolution, "data_format") == "NHWC";
    if (channels_last != (AttrOf<std::string>(norm, "data_layout") == "NHWC")) return;

    const std::vector<ValueId> kept = {convolution.InputIn("Filter"), norm.InputIn("Scale"),
                                       norm.InputIn("Bias"), norm.InputIn("Mean"),
                                       norm.InputIn("Variance")};
    // Feeds and computed filters may change from run to run.
    const bool in_scope = std::ranges::all_of(
        kept, [&](ValueId value) { return !value || Value(value).storage == Storage::kScope; });
    if (!in_scope || WritesScopeOf(plan_, kept, 0, at) ||
        WritesScopeOf(plan_, kept, at + 1, plan_.instructions.size()) ||
        WritesScopeOf(plan_, {convolution.InputIn("Input")}, from + 1, at)) {
      return;
    }

    // Instruction `at` itself is exempt: what it writes is checked above. The folded instruction
    // runs at `at`, so its input mustn't be overwritten on the way there.
    const bool is_fused = norm.op->type == "batch_norm_act";
    AttributeMap attrs;
    for (const AttrDef& attr : convolution.def->attrs) {
      attrs[attr.name] = *EffectiveAttr(*convolution.op, attr);
    }
    attrs["epsilon"] = AttrOf<float>(norm, "epsilon");
    attrs["act_type"] = is_fused ? AttrOf<std::string>(norm, "act_type") : std::string("identity");
    Instruction folded = MakeInstruction(&plan_, *def_, norm, attrs,
                                         {{"Input", convolution.InputIn("Input")},
                                          {"Filter", kept[0]},
                                          {"Scale", kept[1]},
                                          {"Bias", kept[2]},
                                          {"Mean", kept[3]},
                                          {"Variance", kept[4]},
                                          {"Z", is_fused ? norm.InputIn("Z") : ValueId()}},
                                         {{"Output", norm.OutputIn("Y")}});
    if (!rewrite_.HasKernel(folded)) return;
    rewrite_.Replace(at, std::move(folded));
    rewrite_.Drop(from);
  }

  Plan& plan_;
  const OpDef* def_;
  PlanRewrite rewrite_;
};

}  // namespace

PassReport FoldBatchNormPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t folded = Folding(context, plan).Run();
  return {.pass = {}, .changes = folded, .summary = StrCat(folded, " batch norms folded")};
}

}  // namespace skiff
