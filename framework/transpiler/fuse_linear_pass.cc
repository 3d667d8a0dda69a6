#include "framework/transpiler/fuse_linear_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/transpiler/plan_rewrite.h"

namespace skiff {
namespace {

class Fusion {
 public:
  Fusion(const PassContext& context, Plan* plan)
      : plan_(*plan), linear_def_(context.registry.Find("linear")), rewrite_(context, plan) {}

  int64_t Run() {
    if (linear_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "elementwise_add")) Try(i);
    }
    const int64_t made = rewrite_.Apply();
    for (Instruction& instruction : plan_.instructions) {
      for (ValueId& input : instruction.inputs) {
        const auto sum = sums_.find(input);
        if (sum != sums_.end()) input = sum->second;
      }
    }
    return made;
  }

 private:
  // Returns the attributes of the fused op, or none if `linear` has no such product.
  std::optional<AttributeMap> AttrsFor(size_t product) const {
    const bool is_mul = rewrite_.Is(product, "mul");
    const bool is_v2 = rewrite_.Is(product, "matmul_v2");
    if (!is_mul && !is_v2 && !rewrite_.Is(product, "matmul")) return std::nullopt;
    const Instruction& instruction = plan_.instructions[product];
    const int x_rank = rewrite_.ShapeOf(instruction.InputIn("X")).rank();
    const int y_rank = rewrite_.ShapeOf(instruction.InputIn("Y")).rank();
    if (x_rank < 2 || y_rank != 2) return std::nullopt;
    const OpContext context = ContextOf(plan_, instruction);
    if (is_mul) {
      return AttributeMap{
          {"x_num_col_dims", static_cast<int32_t>(context.IntAttr("x_num_col_dims"))}};
    }
    if (context.Attr<bool>(is_v2 ? "trans_x" : "transpose_X") ||
        (!is_v2 && context.Attr<float>("alpha") != 1)) {
      return std::nullopt;
    }
    return AttributeMap{{"x_num_col_dims", int32_t{x_rank - 1}},
                        {"trans_y", context.Attr<bool>(is_v2 ? "trans_y" : "transpose_Y")}};
  }

  // Whether an instruction between two others reads the value's shape. The shape of the sum isn't
  // there yet.
  bool IsReadBetween(ValueId value, size_t first, size_t last) const {
    for (size_t i = first + 1; i < last; ++i) {
      if (std::ranges::count(plan_.instructions[i].inputs, value) > 0) return true;
    }
    return false;
  }

  void Try(size_t at) {
    const Instruction& add = plan_.instructions[at];
    const ValueId rows = add.InputIn("X");
    const size_t product = rewrite_.WriterOf(rows);
    if (product == PlanRewrite::kNobody || rewrite_.OnlyReader(rows) != at) return;
    const std::optional<AttributeMap> attrs = AttrsFor(product);
    const Instruction& factors = plan_.instructions[product];
    // The fused op runs at the addition, so the factors mustn't be overwritten before that.
    if (!attrs || !rewrite_.AddsToRows(add) || IsReadBetween(rows, product, at) ||
        WritesScopeOf(plan_, factors.inputs, product + 1, at)) {
      return;
    }
    Instruction fused = MakeInstruction(
        &plan_, *linear_def_, factors, *attrs,
        {{"X", factors.InputIn("X")}, {"Y", factors.InputIn("Y")}, {"Bias", add.InputIn("Y")}},
        {{"Out", add.OutputIn("Out")}});
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(at, std::move(fused));
    rewrite_.Drop(product);
    sums_[rows] = add.OutputIn("Out");
  }

  Plan& plan_;
  const OpDef* linear_def_;
  PlanRewrite rewrite_;
  // The sum by the product without the bias, which isn't made any more. (The addition's gradient
  // reads its shape.)
  std::map<ValueId, ValueId> sums_;
};

}  // namespace

PassReport FuseLinearPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = Fusion(context, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
