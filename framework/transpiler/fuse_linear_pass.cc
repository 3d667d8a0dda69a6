#include "framework/transpiler/fuse_linear_pass.h"

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

AttributeMap LinearAttrs(const Match& match) {
  const OpContext product = match.ContextOfMaker("p");
  const std::string& type = product.op().type;
  if (type == "mul") {
    return {{"x_num_col_dims", static_cast<int32_t>(product.IntAttr("x_num_col_dims"))}};
  }
  return {{"x_num_col_dims", int32_t{match.ShapeOf("x").rank() - 1}},
          {"trans_y", product.Attr<bool>(type == "matmul" ? "transpose_Y" : "trans_y")}};
}

bool IsLinear(const Match& match) {
  return match.ShapeOf("x").rank() >= 2 && match.ShapeOf("w").rank() == 2 &&
         match.rewrite.AddsToRows(match.MakerOf("s")) &&
         match.rewrite.MayVanish(match["p"], match.instructions);
}

Fusion Linear(const std::string& product, const std::string& attrs) {
  return {.before = StrCat("{Out: [p]} = ", product, "(X: [x], Y: [w]) ", attrs,
                           "{Out: [s]} = elementwise_add(X: [p], Y: [b])"),
          .condition = IsLinear,
          .after = {{.op = "{Out: [s]} = linear(X: [x], Y: [w], Bias: [b])",
                     .at = "s",
                     .origin = "p",
                     .attributes = LinearAttrs}},
          // The addition's gradient reads the shape of p.
          .instead = {{"p", "s"}}};
}

}  // namespace

PassReport FuseLinearPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions =
      *new FusionList{Linear("mul", ""), Linear("matmul_v2", "{trans_x = false} "),
                      Linear("matmul", "{transpose_X = false, alpha = 1.0} ")};
  return ApplyFusions(context, fusions, plan);
}

}  // namespace skiff
