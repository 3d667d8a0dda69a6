// What may be there or not makes a pattern of its own; patterns of more ops come first.
#include "framework/transpiler/fuse_residual_layer_norm_pass.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

// One side of the sum: the ops that lead to it, and its slot in the addition. The other side is the
// residual.
struct Branch {
  bool has_bias = false;
  bool has_dropout = false;
  std::string slot;
  std::string residual_slot;
};

std::vector<Branch> Branches() {
  return {{true, true, "X", "Y"},  {true, true, "Y", "X"},  {false, true, "X", "Y"},
          {true, false, "X", "Y"}, {false, true, "Y", "X"}, {true, false, "Y", "X"},
          {false, false, "X", "Y"}};
}

// Whether the op with this output is an elementwise_add, or its gradient, of two values of the
// shape of s.
bool IsSumOfTwo(const Match& match, const std::string& output) {
  const ValueId x = match.MakerOf(output).InputIn("X");
  const ValueId y = match.MakerOf(output).InputIn("Y");
  const Shape& shape = match.ShapeOf("s");
  return x && y && x != y && match.rewrite.ShapeOf(x) == shape && match.rewrite.ShapeOf(y) == shape;
}

// Likewise, of something of the shape of s and a number for each element of a row.
bool AddsBias(const Match& match, const std::string& output) {
  const Instruction& add = match.MakerOf(output);
  return match.rewrite.ShapeOf(add.InputIn("X")) == match.ShapeOf("s") &&
         match.rewrite.AddsToRows(add);
}

bool NormalizesRows(const Match& match, const std::string& output) {
  return match.ContextOfMaker(output).IntAttr("begin_norm_axis") == match.ShapeOf("s").rank() - 1;
}

bool IsForward(const Match& match) {
  return IsSumOfTwo(match, "s") && NormalizesRows(match, "y") && !match["seed"] &&
         (!match.makers.contains("b") || AddsBias(match, "b"));
}

Fusion Forward(const Branch& branch) {
  const std::string biased = branch.has_bias ? "b" : "x";
  const std::string summed = branch.has_dropout ? "d" : biased;
  std::string before;
  if (branch.has_bias) before += "{Out: [b]} = elementwise_add(X: [x], Y: [bias])\n";
  if (branch.has_dropout) {
    before += StrCat("{Out: [d], Mask: [mask]} = dropout(X: [", biased, "], Seed: [seed])\n");
  }
  before += StrCat("{Out: [s]} = elementwise_add(", branch.slot, ": [", summed, "], ",
                   branch.residual_slot, R"(: [r])
      {Y: [y], Mean: [mean], Variance: [variance]} =
          layer_norm(X: [s], Scale: [scale], Bias: [shift]))");
  FusedOp fused = {.op = StrCat("{Y: [y], Sum: [s], ", branch.has_dropout ? "Mask: [mask], " : "",
                                "Mean: [mean], Variance: [variance]} =\n",
                                "bias_dropout_residual_layer_norm(X: [x], ",
                                branch.has_bias ? "Bias: [bias], " : "",
                                "Residual: [r], LnScale: [scale], LnBias: [shift])"),
                   .at = "y",
                   .origin = branch.has_dropout ? "d" : "",
                   .if_read = {"s"},
                   .attributes_of = {"y"}};
  if (branch.has_dropout) {
    fused.if_read.emplace_back("mask");
    fused.attributes_of.emplace_back("d");
  }
  return {.before = before, .condition = IsForward, .after = {fused}};
}

// What runs earlier than it did reads and writes the arena alone.
bool IsBackward(const Match& match) {
  const auto may_move = [&](size_t i) {
    return i == match.makers.at("dn") || match.rewrite.WritesArenaOnly(match.plan.instructions[i]);
  };
  for (const char* name : {"mask", "other"}) {
    if (match[name] && match.plan[match[name]].storage != Storage::kArena) return false;
  }
  const bool is_sum =
      !match.makers.contains("ds") ||
      (match["other"] != match["dn"] && match.ShapeOf("other") == match.ShapeOf("s"));
  return is_sum && IsSumOfTwo(match, "dr") && NormalizesRows(match, "dn") &&
         (!match.makers.contains("dbias") || AddsBias(match, "dbias")) &&
         std::ranges::all_of(match.instructions, may_move);
}

// Where others read s, too, its gradient is the sum of two terms, that of the norm (dn) and theirs.
// `is_equal`: dr needn't be written, since dx is the same.
Fusion Backward(const Branch& branch, const std::string& terms, bool is_equal) {
  const std::string of_biased = branch.has_bias ? "db" : "dx";
  const std::string of_summed = branch.has_dropout ? "dd" : of_biased;
  std::string before = R"({X@GRAD: [dn], Scale@GRAD: [dscale], Bias@GRAD: [dshift]} =
      layer_norm_grad(X: [s], Scale: [scale], Bias: [shift], Mean: [mean], Variance: [variance],
                      Y@GRAD: [dy])
)";
  if (!terms.empty()) before += StrCat("{Out: [ds]} = sum(X: [", terms, "])\n");
  before += StrCat("{", branch.slot, "@GRAD: [", of_summed, "], ", branch.residual_slot,
                   "@GRAD: [dr]} = elementwise_add_grad(Out@GRAD: [", terms.empty() ? "dn" : "ds",
                   "])\n");
  if (branch.has_dropout) {
    before += StrCat("{X@GRAD: [", of_biased, "]} = dropout_grad(Mask: [mask], Out@GRAD: [dd])\n");
  }
  if (branch.has_bias) {
    before += "{X@GRAD: [dx], Y@GRAD: [dbias]} = elementwise_add_grad(Y: [bias], Out@GRAD: [db])\n";
  }
  std::vector<std::string> attributes_of = {"dn"};
  if (branch.has_dropout) attributes_of.push_back(of_biased);
  return {.before = before,
          .condition = IsBackward,
          .after = {{.op = StrCat("{X@GRAD: [dx], ", branch.has_bias ? "Bias@GRAD: [dbias], " : "",
                                  is_equal ? "" : "Residual@GRAD: [dr], ",
                                  "LnScale@GRAD: [dscale], LnBias@GRAD: [dshift]} =\n",
                                  "bias_dropout_residual_layer_norm_grad(",
                                  terms.empty() ? "" : "Sum@GRAD: [other], ", "Sum: [s], ",
                                  branch.has_dropout ? "Mask: [mask], " : "",
                                  branch.has_bias ? "Bias: [bias], " : "",
                                  R"(LnScale: [scale], LnBias: [shift], Mean: [mean],
                                     Variance: [variance], Y@GRAD: [dy]))"),
                     .at = "dn",
                     .attributes_of = attributes_of}},
          .instead = is_equal ? std::map<std::string, std::string>{{"dr", "dx"}}
                              : std::map<std::string, std::string>{}};
}

std::vector<Fusion> AllFusions() {
  std::vector<Fusion> fusions;
  for (const Branch& branch : Branches()) fusions.push_back(Forward(branch));
  for (const char* terms : {"", "dn, other", "other, dn"}) {
    for (const Branch& branch : Branches()) {
      if (!branch.has_dropout) fusions.push_back(Backward(branch, terms, true));
      fusions.push_back(Backward(branch, terms, false));
    }
  }
  return fusions;
}

}  // namespace

PassReport FuseResidualLayerNormPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions = *new FusionList(AllFusions());
  return ApplyFusions(context, fusions, plan);
}

}  // namespace skiff
