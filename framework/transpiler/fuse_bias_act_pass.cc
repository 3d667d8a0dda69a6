// The relu's gradient needs only the sign of its output, so the sum isn't kept. What is gained is a
// pass over memory in each direction and, more important after convolutions, that bias_act takes
// blocked tensors.
#include "framework/transpiler/fuse_bias_act_pass.h"

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

// The axis of x to which the op with this output, an addition or its gradient, adds b; -1 for none
// that bias_act takes.
int64_t BiasAxis(const Match& match, const std::string& output) {
  const Shape& x = match.ShapeOf("r");
  const Shape& bias = match.ShapeOf("b");
  const int64_t given = match.ContextOfMaker(output).IntAttr("axis");
  const int64_t axis = given == -1 ? x.rank() - 1 : given;
  const bool is_taken = x.rank() >= 2 && x.rank() <= 5 && bias.rank() == 1 &&
                        (axis == 1 || axis == x.rank() - 1) && bias[0] == x[static_cast<int>(axis)];
  return is_taken ? axis : -1;
}

AttributeMap ReluAttrs(const Match& match, const std::string& of_add) {
  return {{"data_layout", std::string(BiasAxis(match, of_add) == 1 ? "NCHW" : "NHWC")}};
}

Fusion BiasRelu() {
  return {.before = R"({Out: [s]} = elementwise_add(X: [x], Y: [b])
                       {Out: [r]} = relu(X: [s]))",
          // If x were broadcast, too, the sum would have another shape.
          .condition =
              [](const Match& match) {
                return BiasAxis(match, "s") > 0 && match.ShapeOf("x") == match.ShapeOf("s");
              },
          .after = {{.op = R"({Out: [r]} = bias_act(X: [x], Bias: [b]) {act_type = "relu"})",
                     .at = "r",
                     .origin = "s",
                     .attributes = [](const Match& match) { return ReluAttrs(match, "s"); }}}};
}

Fusion BiasReluGradient() {
  return {.gradient_of = "r",
          .before = R"({X@GRAD: [ds]} = relu_grad(Out: [r], Out@GRAD: [dr])
                   {X@GRAD: [dx], Y@GRAD: [db]} = elementwise_add_grad(Y: [b], Out@GRAD: [ds]))",
          .condition = [](const Match& match) { return match["db"] && BiasAxis(match, "dx") > 0; },
          .after = {{.op = R"({X@GRAD: [dx], Bias@GRAD: [db]} =
                          bias_act_grad(Out: [r], Bias: [b], Out@GRAD: [dr]) {act_type = "relu"})",
                     .at = "dx",
                     .attributes = [](const Match& match) { return ReluAttrs(match, "dx"); }}}};
}

// Whether the op with this output, an addition or its gradient, adds a vector along the last dim of
// rows. Images stay apart: bias_gelu takes no blocked layout.
bool AddsBiasToRows(const Match& match, const std::string& output) {
  const Shape& sum = match.ShapeOf("s");
  return (sum.rank() == 2 || sum.rank() == 3) && match.ShapeOf("x") == sum &&
         match.rewrite.AddsToRows(match.MakerOf(output));
}

constexpr char kBiasGelu[] = R"({Out: [s]} = elementwise_add(X: [x], Y: [b])
                                {Out: [g]} = gelu(X: [s])
)";

FusedOp FusedBiasGelu() {
  return {.op = "{Out: [g]} = bias_gelu(X: [x], Bias: [b])",
          .at = "g",
          .origin = "s",
          .attributes_of = {"g"}};
}

Fusion BiasGelu() {
  return {.before = kBiasGelu,
          .condition = [](const Match& match) { return AddsBiasToRows(match, "s"); },
          .after = {FusedBiasGelu()}};
}

// Both directions at once: the sum goes only if its gradient does without.
Fusion BiasGeluAndGradient() {
  return {.before = StrCat(kBiasGelu, R"(
              {X@GRAD: [ds]} = gelu_grad(X: [s], Out@GRAD: [dg])
              {X@GRAD: [dx], Y@GRAD: [db]} =
                  elementwise_add_grad(X: [x], Y: [b], Out@GRAD: [ds]))"),
          .condition =
              [](const Match& match) {
                return AddsBiasToRows(match, "s") && AddsBiasToRows(match, "dx");
              },
          .after = {FusedBiasGelu(),
                    {.op = R"({X@GRAD: [dx], Bias@GRAD: [db]} =
                              bias_gelu_grad(X: [x], Bias: [b], Out@GRAD: [dg]))",
                     .at = "dx",
                     .attributes_of = {"ds"}}}};
}

}  // namespace

PassReport FuseBiasActPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions =
      *new FusionList{BiasRelu(), BiasReluGradient(), BiasGeluAndGradient(), BiasGelu()};
  return ApplyFusions(context, fusions, plan);
}

}  // namespace skiff
