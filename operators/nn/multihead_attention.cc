// multihead_attention: what each query finds in a sequence, in several heads at once. The columns
// of Query, Key and Value are those of head 0, then those of head 1, and so on; with Q, K and V
// those of one head of one sequence,
//
//   S = scale · Q K' + Bias,   P = softmax of S's rows,   Out = (P · Mask / (1 - p)) V
//
// Source: Vaswani et al. 2017. No more than a tile of S is ever in memory: a tile's contribution to
// Out is added with the maximum and sum so far, and the gradient computes S again (Dao et al.,
// FlashAttention, arXiv 2205.14135). The pass fuse_attention makes it of the ops of Fluid that
// compute the same.
//
// Mask drops weights as the op dropout with upscale_in_train does to a tensor P of
// [N, heads, Lq, Lk]: with the op's id, or the same seed, the same ones are dropped. A row of
// scores that are all -inf gives NaN, as softmax does; a row that a Bias of -1e9 hides as a whole
// gives the mean of V's rows, up to the rounding of the scores. KeyLengths hides the keys of
// padding and saves the work on them; a sequence of length 0 gives zeros. Positions hides the keys
// behind each query where the keys have room for later ones: a cache of keys and values.
//
// Gradient, with dP = (dOut V') · Mask / (1 - p):
//   dS = P · (dP - sum over a row of dOut · Out),  dQ = scale · dS K,  dK = scale · dS' Q
//   dV = (P · Mask / (1 - p))' dOut
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/dropout_settings.h"
#include "operators/common/input_checks.h"
#include "operators/nn/attention/attention_arguments.h"
#include "operators/nn/attention/attention_kernels.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const AttentionSizes sizes = ParseAttention(context);
  const DType dtype = context.Input("Query").dtype;
  context.SetOutputLike("Out", "Query");
  context.SetOutput("Out", AttentionOutShape(sizes), dtype);
  context.SetOutput("RowMax", AttentionStatisticsShape(sizes), dtype);
  context.SetOutput("RowSum", AttentionStatisticsShape(sizes), dtype);
  context.SetOutput("DropoutKey", {kAttentionKeyNumbers}, DType::kInt64);
}

void InferGrad(OpContext& context) {
  const AttentionSizes sizes = ParseAttention(context);
  const DType dtype = context.Input("Query").dtype;
  CheckInputLike(context, "Out", AttentionOutShape(sizes), dtype);
  CheckInputLike(context, "Out@GRAD", AttentionOutShape(sizes), dtype);
  CheckInputLike(context, "RowMax", AttentionStatisticsShape(sizes), dtype);
  CheckInputLike(context, "RowSum", AttentionStatisticsShape(sizes), dtype);
  if (context.HasInput("DropoutKey"))
    CheckInputLike(context, "DropoutKey", {kAttentionKeyNumbers}, DType::kInt64);
  SKIFF_ENFORCE(context.HasInput("DropoutKey") || !DropoutSettingsOf(context).draws(),
                kInvalidArgument, context.op().type,
                ": DropoutKey is missing, expected that of the forward op");
  context.SetOutputLike("Query@GRAD", "Query");
  if (IsPackedAttention(context)) return;
  context.SetOutputLike("Key@GRAD", "Key");
  context.SetOutputLike("Value@GRAD", "Value");
}

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = {
      {.name = "num_heads",
       .type = AttrType::kInt,
       .default_value = int32_t{1},
       .doc = "The number of heads that the columns are split into.",
       .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
       .expected = "at least 1",
       .refusal = ErrorCode::kOutOfRange},
      {.name = "scale",
       .type = AttrType::kFloat,
       .default_value = 1.0f,
       .doc = "The factor of the products of queries and keys."},
      {.name = "causal",
       .type = AttrType::kBool,
       .default_value = false,
       .doc = "Query i sees the keys up to i + Lk - Lq only: the last query sees all. With "
              "Positions, it sees the keys up to its own place."}};
  std::ranges::move(UpscaledDropoutAttrs(), std::back_inserter(attrs));
  return attrs;
}

// At most: KeyLengths is data. 2 FLOP for each column of each pair of a query and a key that it
// sees, in `products` products.
double PairFlop(const OpContext& context, double products) {
  const AttentionSizes sizes = ParseAttention(context);
  const auto queries = static_cast<double>(sizes.queries);
  const auto keys = static_cast<double>(sizes.keys);
  const double pairs = queries * (sizes.causal ? keys - (queries - 1) / 2 : keys);
  return 2 * products * static_cast<double>(sizes.batch) * static_cast<double>(ColumnsOf(sizes)) *
         pairs;
}

OpDef AttentionDef() {
  OpDef def;
  def.type = "multihead_attention";
  def.doc =
      "Out = softmax(scale * Q K' + Bias) V for each head's columns Q, K, V of Query, Key, Value, "
      "with weights dropped in training; memory grows with the length, not with its square.";
  def.inputs = {
      {.name = "Query",
       .doc = "[N, Lq, C], C columns for all heads; packed, [N, L, 3 C]: the columns of the "
              "queries, of the keys, of the values."},
      {.name = "Key", .doc = "[N, Lk, C]; absent if Query is packed.", .dispensable = true},
      {.name = "Value", .doc = "[N, Lk, C]; absent if Query is packed.", .dispensable = true},
      {.name = "Bias",
       .doc = "Added to the scores: [N, heads, Lq, Lk] or its last dims; any but Lk may be 1.",
       .dispensable = true},
      {.name = "KeyLengths",
       .doc = "[N], int64: how many keys of each sequence are seen, the first ones. Absent: "
              "all.",
       .dispensable = true,
       .checks_data = true},
      {.name = "Positions",
       .doc = "[N, Lq], int64: the places of the queries among the keys, one after the other in "
              "each sequence, so that the first one counts; it is clamped to [0, Lk - Lq]. Only "
              "with `causal`, and without KeyLengths.",
       .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "[N, Lq, C]."},
                 {.name = "RowMax",
                  .doc = "[N, heads, Lq]: each query's largest score.",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true},
                 {.name = "RowSum",
                  .doc = "[N, heads, Lq]: the sum of exp(score - RowMax).",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true},
                 {.name = "DropoutKey",
                  .doc = "[3], int64: seed, op id and step that the dropped weights depend on.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.flop = [](const OpContext& context) { return PairFlop(context, 2); };
  def.random = true;
  return def;
}

OpDef AttentionGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {"Query", "Key", "Value", "Bias", "KeyLengths", "Positions", "Out",
                          "RowMax", "RowSum", Optional("DropoutKey"), "Out@GRAD"},
                         {"Query@GRAD", "Key@GRAD", "Value@GRAD"});
  forward->grad = [usual = forward->grad](const GradContext& context) {
    const std::vector<std::string> of_bias = context.InputGrad("Bias");
    SKIFF_ENFORCE(
        std::ranges::all_of(of_bias, [](const auto& name) { return name == kEmptyVarName; }),
        kUnimplemented,
        "multihead_attention: a gradient of Bias is wanted, which is not provided, "
        "expected a mask without one (stop_gradient)");
    return usual(context);
  };
  def.doc =
      "With the weights P, from scores that are computed again, and dP = (dOut V') * Mask / (1 - "
      "p): dS = P * (dP - sum of dOut * Out), dQ = scale * dS K, dK = scale * dS' Q, dV = (P * "
      "Mask / (1 - p))' dOut. Bias has no gradient.";
  def.infer = InferGrad;
  def.flop = [](const OpContext& context) { return PairFlop(context, 5); };
  return def;
}

}  // namespace

void RegisterMultiheadAttention(OpRegistry& registry) {
  OpDef def = AttentionDef();
  registry.Add(AttentionGradDef(&def));
  registry.Add(std::move(def));
  AddAttentionKernels(registry);
}

}  // namespace skiff
