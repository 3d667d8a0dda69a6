// With running statistics, a batch norm is y = a · c + b by channel, with a = scale / sqrt(variance
// + epsilon) and b = bias - a · mean. So conv2d(x, w) followed by it is conv2d(x, a · w) + b. The
// scaled filter is a derived form, which the kernel makes once as long as the parameters don't
// change. If an instruction of the plan writes them, it would be made in every run; hence the
// checks over the whole plan.
#include "framework/transpiler/fold_batch_norm_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/analysis/running_state.h"
#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

// Whether filter and statistics are the same in each run. Feeds and computed filters may change.
// The batch norm itself is exempt: what it writes must vanish.
bool AreConstant(const Match& match) {
  std::vector<ValueId> kept;
  for (const char* name : {"w", "scale", "bias", "mean", "variance"}) kept.push_back(match[name]);
  const size_t at = match.makers.at("y");
  return std::ranges::all_of(kept,
                             [&](ValueId value) {
                               return !value || match.plan[value].storage == Storage::kScope;
                             }) &&
         !WritesScopeOf(match.plan, kept, 0, at) &&
         !WritesScopeOf(match.plan, kept, at + 1, match.plan.instructions.size());
}

bool MayFold(const Match& match) {
  const OpContext norm = match.ContextOfMaker("y");
  const OpContext convolution = match.ContextOfMaker("c");
  const bool channels_last = convolution.Attr<std::string>("data_format") == "NHWC";
  return !UpdatesRunningState(norm.def(), norm.op()) &&
         channels_last == (norm.Attr<std::string>("data_layout") == "NHWC") && AreConstant(match);
}

Fusion Folding(const std::string& norm, const std::string& attrs) {
  return {.before = StrCat("{Output: [c]} = conv2d(Input: [x], Filter: [w])\n{Y: [y]} = ", norm,
                           "(X: [c], Scale: [scale], Bias: [bias], Mean: [mean], ",
                           "Variance: [variance])"),
          .condition = MayFold,
          .after = {{.op = StrCat("{Output: [y]} = conv2d_batch_norm_act(Input: [x], Filter: [w])",
                                  attrs),
                     .at = "y",
                     .arguments_of = "y",
                     .attributes_of = {"c", "y"}}}};
}

}  // namespace

PassReport FoldBatchNormPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions = *new FusionList{Folding("batch_norm", R"( {act_type = "identity"})"),
                                               Folding("batch_norm_act", "")};
  const int64_t folded = ApplyFusions(context, fusions, plan).changes;
  return {.pass = {}, .changes = folded, .summary = StrCat(folded, " batch norms folded")};
}

}  // namespace skiff
