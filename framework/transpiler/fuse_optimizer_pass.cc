// Works on the definitions of variables as they were before the pass: only inputs and attributes of
// updates change, so the definitions of gradients stay valid while ops are folded. An op may be
// folded only if its operands still hold the same values where the update runs (IsSame). A folded
// op itself stays in the program, since a fetch may want its result; dead_code drops it from plans
// without one.
#include "framework/transpiler/fuse_optimizer_pass.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "framework/analysis/definitions.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

class Folding {
 public:
  Folding(const OpRegistry& registry, Block* block)
      : registry_(registry),
        block_(*block),
        definitions_(FindDefinitions(registry, *block)),
        is_gone_(block->ops().size(), false) {}

  PassReport Run() {
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      Op& op = *block_.ops()[i];
      if (op.type == "sum" && (op.role() & kRoleOptimize) != 0) FoldNorms(i);
      const OpDef* def = registry_.Find(op.type);
      if (def != nullptr && TakesFolds(op, *def)) FoldIntoUpdate(i);
      if (def != nullptr && def->update.has_value()) {
        for (const UpdateRule::Power& power : def->update->powers) FoldPower(i, *def, power, &op);
      }
    }
    RemoveGone();
    return {.pass = {},
            .changes = decays_ + scales_ + powers_ + norms_ + casts_,
            .summary = StrCat(decays_, " decays, ", scales_, " scales, ", powers_, " powers and ",
                              casts_, " casts of gradients folded into updates, ", norms_,
                              " norms into global ones")};
  }

 private:
  static bool TakesFolds(const Op& op, const OpDef& def) {
    const AttrDef* method = def.FindAttr("regularization_method");
    return def.update.has_value() && def.FindInput("GradScale") != nullptr && method != nullptr &&
           method->type == AttrType::kString && op.Input("Param").size() == 1;
  }

  // Returns the op that computed the value that the variable has when op `position` starts, if it
  // is an optimizer op of that type and the value hasn't been changed since; else nullptr.
  const Op* MadeBy(size_t position, const std::string& name, const std::string& type,
                   size_t* at) const {
    const Definition* definition = definitions_.Before(position, block_.FindVar(name));
    if (definition == nullptr || definition->origin != Origin::kOp || definition->first < 0 ||
        !definition->updates.empty()) {
      return nullptr;
    }
    *at = static_cast<size_t>(definition->first);
    const Op* op = block_.ops()[*at].get();
    return op->type == type && (op->role() & kRoleOptimize) != 0 ? op : nullptr;
  }

  // Returns whether the variable has the same value when either op starts.
  bool IsSame(const std::string& name, size_t earlier, size_t later) const {
    const Var* var = block_.FindVar(name);
    return definitions_.Before(earlier, var) == definitions_.Before(later, var);
  }

  bool IsDense(const std::string& name) const {
    const Var* var = block_.FindVar(name);
    return var != nullptr && var->kind == VarKind::kLoDTensor;
  }

  // Returns whether the op multiplies by an attribute and does nothing else.
  static bool IsScaleOnly(const Op& op) {
    return op.Attr<float>("bias", 0.0f) == 0.0f && op.Input("ScaleTensor").empty();
  }

  // Returns the two-byte variable from which an optimizer op cast the value that `name` has when op
  // `position` starts, or nullptr. Such a cast to float32 doesn't round, so a reader of the
  // original gets the same numbers.
  const std::string* WidenedFrom(size_t position, const std::string& name) const {
    size_t at = 0;
    const Op* cast = MadeBy(position, name, "cast", &at);
    if (cast == nullptr) return nullptr;
    const std::string& from = cast->Input("X")[0];
    const bool is_exact = IsHalf(DTypeOf(from)) && DTypeOf(name) == DType::kFloat32;
    return is_exact && IsDense(from) && IsSame(from, at, position) ? &from : nullptr;
  }

  DType DTypeOf(const std::string& name) const { return block_.GetVar(name)->dtype; }

  // Folds from the last op back to the gradient. An update op itself applies its steps in the order
  // cast, rescale, scale, decay, so each fold is allowed only while nothing that must come before
  // it has been folded.
  void FoldIntoUpdate(size_t i) {
    Op& op = *block_.ops()[i];
    if (!IsDense(op.Input("Grad").at(0))) return;
    const auto is_rescaled = [&] { return op.Attr<float>("rescale_grad", 1.0f) != 1.0f; };
    const auto is_scaled = [&] { return is_rescaled() || !op.Input("GradScale").empty(); };
    const auto decays = [&] { return !op.Attr<std::string>("regularization_method", "").empty(); };
    if (!decays() && !is_scaled()) FoldDecay(i, &op);
    if (!is_scaled()) FoldFactor(i, &op);
    if (!is_rescaled()) FoldScale(i, &op);
    FoldCast(i, &op);
  }

  // Grad = g, of the parameter's dtype, as float32.
  void FoldCast(size_t i, Op* op) {
    const std::string* gradient = WidenedFrom(i, op->Input("Grad")[0]);
    if (gradient == nullptr || DTypeOf(*gradient) != DTypeOf(op->Input("Param")[0])) return;
    op->SetInput("Grad", {*gradient});
    ++casts_;
  }

  // Grad = sum(g, scale(Param)), or of sign(Param); of the master weights, where there are any.
  void FoldDecay(size_t i, Op* op) {
    size_t at_sum = 0;
    size_t at_scale = 0;
    const Op* sum = MadeBy(i, op->Input("Grad")[0], "sum", &at_sum);
    if (sum == nullptr || sum->Input("X").size() != 2) return;
    const std::string& gradient = sum->Input("X")[0];
    const Op* scale = MadeBy(at_sum, sum->Input("X")[1], "scale", &at_scale);
    if (scale == nullptr || !IsScaleOnly(*scale) || !IsDense(gradient)) return;
    std::string decayed = scale->Input("X")[0];
    size_t at_read = at_scale;
    const Op* sign = MadeBy(at_scale, decayed, "sign", &at_read);
    if (sign != nullptr) decayed = sign->Input("X")[0];
    const bool has_master = !op->Input("MasterParam").empty();
    const std::string& param = op->Input(has_master ? "MasterParam" : "Param")[0];
    if (decayed != param || !IsSame(param, at_read, i) || !IsSame(gradient, at_sum, i)) return;
    op->SetAttr("regularization_method", std::string(sign != nullptr ? "l1_decay" : "l2_decay"));
    op->SetAttr("regularization_coeff", scale->Attr<float>("scale", 1.0f));
    op->SetInput("Grad", {gradient});
    ++decays_;
  }

  // Grad = g * a number.
  void FoldFactor(size_t i, Op* op) {
    size_t at = 0;
    const Op* product = MadeBy(i, op->Input("Grad")[0], "elementwise_mul", &at);
    if (product == nullptr) return;
    const std::string& gradient = product->Input("X")[0];
    const std::string& factor = product->Input("Y")[0];
    const Var* var = block_.FindVar(factor);
    const bool is_number =
        var != nullptr && std::ranges::all_of(var->dims, [](int64_t dim) { return dim == 1; });
    if (!is_number || !IsDense(gradient) || !IsSame(gradient, at, i) || !IsSame(factor, at, i)) {
      return;
    }
    op->SetInput("GradScale", {factor});
    op->SetInput("Grad", {gradient});
    ++scales_;
  }

  // Grad = g * a constant.
  void FoldScale(size_t i, Op* op) {
    size_t at = 0;
    const Op* scale = MadeBy(i, op->Input("Grad")[0], "scale", &at);
    if (scale == nullptr || !IsScaleOnly(*scale)) return;
    const std::string& gradient = scale->Input("X")[0];
    if (!IsDense(gradient) || !IsSame(gradient, at, i)) return;
    op->SetAttr("rescale_grad", scale->Attr<float>("scale", 1.0f));
    op->SetInput("Grad", {gradient});
    ++scales_;
  }

  bool IsOptimizers(size_t i, const std::string& type) const {
    const Op& op = *block_.ops()[i];
    return op.type == type && (op.role() & kRoleOptimize) != 0;
  }

  // After an update whose power the program advances: power = scale(power), or, where updates may
  // be skipped, next = scale(power), power = where(SkipUpdate, power, next).
  void FoldPower(size_t i, const OpDef& def, const UpdateRule::Power& rule, Op* op) {
    if (op->Input(rule.input).size() != 1 || !op->Output(rule.output).empty()) return;
    const std::vector<std::string> power = op->Input(rule.input);
    const Definition* held = definitions_.Before(i, block_.FindVar(power[0]));
    const bool may_skip = !op->Input("SkipUpdate").empty();
    // No other op may see the power that the op advances.
    if (held == nullptr || !held->updates.empty() || held->readers.size() != (may_skip ? 3U : 2U) ||
        held->readers[0] != i) {
      return;
    }
    const size_t at_scale = held->readers[1];
    const size_t at_last = held->readers.back();
    const Op& scale = *block_.ops()[at_scale];
    const Op& last = *block_.ops()[at_last];
    if (!IsOptimizers(at_scale, "scale") || !IsScaleOnly(scale) || last.Output("Out") != power ||
        scale.Attr<float>("scale", 1.0f) !=
            std::get<float>(*EffectiveAttr(*op, *def.FindAttr(rule.factor)))) {
      return;
    }
    if (may_skip) {
      const std::string& skip = op->Input("SkipUpdate")[0];
      const std::vector<std::string>& next = scale.Output("Out");
      const Definition* made = definitions_.Before(at_last, block_.FindVar(next.at(0)));
      if (!IsOptimizers(at_last, "where") || last.Input("Condition") != op->Input("SkipUpdate") ||
          last.Input("X") != power || last.Input("Y") != next || !IsSame(skip, i, at_last) ||
          made == nullptr || made->first != static_cast<int64_t>(at_scale) ||
          made->readers.size() != 1 || made->outlives.any()) {
        return;
      }
    }
    op->SetOutput(rule.output, power);
    // Unlike other folded ops, these must go: they would advance the power a second time.
    is_gone_[at_scale] = is_gone_[at_last] = true;
    ++powers_;
  }

  void RemoveGone() {
    std::vector<size_t> order;
    for (size_t i = 0; i < is_gone_.size(); ++i) {
      if (!is_gone_[i]) order.push_back(i);
    }
    if (order.size() < is_gone_.size()) block_.ReorderOps(order);
  }

  static bool IsWide(const Op& op) { return op.Attr<bool>("wide_float32", false); }

  // sum(squared_l2_norm(g1), squared_l2_norm(g2), …), some of g1, g2, … being casts to float32.
  void FoldNorms(size_t i) {
    Op& sum = *block_.ops()[i];
    if (sum.Input("X").size() < 2) return;
    std::vector<std::string> tensors;
    for (const std::string& square : sum.Input("X")) {
      size_t at = 0;
      const Op* norm = MadeBy(i, square, "squared_l2_norm", &at);
      if (norm == nullptr || IsWide(*norm) != IsWide(sum)) return;
      const std::string& tensor = norm->Input("X")[0];
      if (!IsSame(tensor, at, i)) return;
      const std::string* widened = WidenedFrom(at, tensor);
      tensors.push_back(widened != nullptr && IsSame(*widened, at, i) ? *widened : tensor);
    }
    norms_ += static_cast<int64_t>(tensors.size());
    sum.type = "squared_global_norm";
    sum.SetInput("X", std::move(tensors));
  }

  const OpRegistry& registry_;
  Block& block_;
  BlockDefinitions definitions_;
  std::vector<bool> is_gone_;  // by op
  int64_t decays_ = 0;
  int64_t scales_ = 0;
  int64_t powers_ = 0;
  int64_t norms_ = 0;
  int64_t casts_ = 0;
};

}  // namespace

PassReport FuseOptimizerPass::Apply(const ProgramPassContext& context, Program* program) const {
  return Folding(context.registry, program->root()).Run();
}

}  // namespace skiff
