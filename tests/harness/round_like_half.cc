#include "tests/harness/round_like_half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/grad_name.h"

namespace skiff::harness {
namespace {

using Names = std::map<std::string, std::string>;

class Rounding {
 public:
  Rounding(const OpRegistry& registry, Program* program)
      : registry_(registry), program_(*program) {}

  void Run() {
    for (size_t i = 0; i < program_.block_count(); ++i) Widen(BlockAt(i));
    for (size_t i = 0; i < program_.block_count(); ++i) FindSums(*BlockAt(i));
    for (size_t i = 0; i < program_.block_count(); ++i) Round(BlockAt(i));
  }

 private:
  Block* BlockAt(size_t i) { return program_.block(static_cast<int32_t>(i)); }

  void Widen(Block* block) {
    for (const auto& var : block->vars()) {
      if (!IsHalf(var->dtype)) continue;
      halves_[var.get()] = var->dtype;
      var->dtype = DType::kFloat32;
    }
  }

  // Returns what the variable was; float32 if it wasn't half, or if it is an array: what ops write
  // to arrays is rounded already.
  DType HalfOf(const Block& block, const std::string& name) const {
    const Var* var = name == kEmptyVarName ? nullptr : block.FindVar(name);
    const auto found = halves_.find(var);
    const bool is_half = found != halves_.end() && var->kind != VarKind::kLoDTensorArray;
    return is_half ? found->second : DType::kFloat32;
  }

  // Notes the variables of gradient blocks whose values in all iterations are added up.
  void FindSums(const Block& block) {
    for (const auto& op : block.ops()) {
      const OpDef* def = registry_.Find(op->type);
      if (def == nullptr || def->block == nullptr || !def->block->is_gradient) continue;
      const BlockRule::Kind kind = def->block->kind;
      const bool is_recurrent = kind == BlockRule::Kind::kRecurrent;
      for (const int32_t inside : op->SubBlocks()) {
        for (const std::string& name :
             op->Input(is_recurrent ? "parameters" : SlotsOf(kind).captured)) {
          sums_[program_.block(inside)].insert(GradName(name));
        }
      }
    }
  }

  void Round(Block* block) {
    std::vector<Op> ops;
    for (const auto& op : block->ops()) ops.push_back(*op);
    block->RemoveOps(0, ops.size());
    // From what is added up to its rounded value, which the other ops of the block read.
    Names rounded;
    for (Op& op : ops) {
      for (SlotArguments& slot : op.inputs) {
        for (std::string& name : slot.arguments) {
          const auto found = rounded.find(name);
          if (found != rounded.end()) name = found->second;
        }
      }
      SetDTypes(&op);
      const OpDef* def = registry_.Find(op.type);
      if (def != nullptr && def->block != nullptr) {
        AppendLoop(std::move(op), def->block->is_gradient, block);
      } else if (op.Attr<bool>("multi_precision", false)) {
        const bool is_update = (op.role() & kRoleOptimize) != 0;
        is_update ? AppendUpdate(std::move(op), block) : AppendInHalf(std::move(op), block);
      } else if (op.type == "check_finite_and_unscale") {
        AppendUnscaling(std::move(op), block, &rounded);
      } else {
        Append(std::move(op), block, &rounded);
      }
    }
  }

  // Makes the op write to other variables, from which casts make those that it wrote to.
  void Append(Op op, Block* block, Names* rounded) {
    const std::set<std::string>& sums = sums_[block];
    Names made;
    for (SlotArguments& slot : op.outputs) {
      for (std::string& name : slot.arguments) {
        const DType half = HalfOf(*block, name);
        if (!IsHalf(half)) continue;
        const std::string other = MakeLike(block, name, DType::kFloat32);
        if (sums.contains(name)) {
          (*rounded)[name] = other;
          made[name] = other;
        } else {
          made[other] = name;
          name = other;
        }
        dtypes_[other] = half;
      }
    }
    const Op& origin = *block->AppendOp(std::move(op));
    for (const auto& [exact, out] : made) {
      const auto of_other = dtypes_.find(exact);
      AppendRounding(exact, out, of_other != dtypes_.end() ? of_other->second : dtypes_.at(out),
                     origin, block);
    }
  }

  // What a loop makes in an iteration is rounded there, but not what it adds up.
  void AppendLoop(Op op, bool is_gradient, Block* block) {
    const Op& loop = *block->AppendOp(std::move(op));
    if (!is_gradient) return;
    for (const std::string& name : loop.OutputNames()) {
      const DType half = HalfOf(*block, name);
      const bool is_sum_itself = sums_[block].contains(name);
      if (IsHalf(half) && !is_sum_itself) AppendRounding(name, name, half, loop, block);
    }
  }

  // An update has float32 parameters now, those that were the master weights.
  void AppendUpdate(Op op, Block* block) {
    const std::vector<std::string> parameters = op.Output("ParamOut");
    const std::vector<std::string> masters = op.Output("MasterParamOut");
    op.SetInput("Param", op.Input("MasterParam")).SetOutput("ParamOut", masters);
    std::erase_if(op.inputs, [](const SlotArguments& slot) { return slot.slot == "MasterParam"; });
    std::erase_if(op.outputs,
                  [](const SlotArguments& slot) { return slot.slot == "MasterParamOut"; });
    op.SetAttr("multi_precision", false);
    const Op& update = *block->AppendOp(std::move(op));
    for (size_t i = 0; i < parameters.size(); ++i) {
      AppendRounding(masters[i], parameters[i], HalfOf(*block, parameters[i]), update, block);
    }
  }

  // An op that asks whether its results are finite once they are rounded.
  void AppendUnscaling(Op op, Block* block, Names* rounded) {
    const std::vector<std::string> results = op.Output("Out");
    const std::string found = op.Output("FoundInfinite")[0];
    const int32_t role = op.role();
    Append(std::move(op), block, rounded);
    for (const std::string& result : results) {
      if (!IsHalf(HalfOf(*block, result))) continue;
      const std::string is_finite = MakeLike(block, found, DType::kBool);
      const std::string is_infinite = MakeLike(block, found, DType::kBool);
      const auto append = [&](Op check) {
        if (role != kRoleForward) check.SetAttr(kOpRoleAttr, role & ~kRoleLoss);
        block->AppendOp(std::move(check));
      };
      append(Op("isfinite").SetInput("X", {result}).SetOutput("Out", {is_finite}));
      append(Op("logical_not").SetInput("X", {is_finite}).SetOutput("Out", {is_infinite}));
      append(Op("logical_or")
                 .SetInput("X", {found})
                 .SetInput("Y", {is_infinite})
                 .SetOutput("Out", {found}));
    }
  }

  // An update that no optimizer made: its parameters needn't be its master weights, rounded, which
  // shows when it skips the update.
  void AppendInHalf(Op op, Block* block) {
    for (SlotArguments& slot : op.inputs) {
      for (std::string& name : slot.arguments) {
        const DType half = HalfOf(*block, name);
        if (!IsHalf(half)) continue;
        const std::string narrow = MakeLike(block, name, half);
        AppendCast(name, DType::kFloat32, narrow, half, op, block);
        name = narrow;
      }
    }
    Names made;
    for (SlotArguments& slot : op.outputs) {
      for (std::string& name : slot.arguments) {
        const DType half = HalfOf(*block, name);
        if (!IsHalf(half)) continue;
        const std::string narrow = MakeLike(block, name, half);
        made[narrow] = name;
        name = narrow;
      }
    }
    const Op& update = *block->AppendOp(std::move(op));
    for (const auto& [narrow, out] : made) {
      AppendCast(narrow, block->GetVar(narrow)->dtype, out, DType::kFloat32, update, block);
    }
  }

  static void SetDTypes(Op* op) {
    for (auto& [name, value] : op->attrs) {
      auto* number = std::get_if<int32_t>(&value);
      if (number == nullptr || !name.ends_with("dtype") || !IsDType(*number)) continue;
      if (IsHalf(DTypeFromAttribute(*number))) *number = static_cast<int32_t>(DType::kFloat32);
    }
  }

  std::string MakeLike(Block* block, const std::string& name, DType dtype) {
    Var var = *block->GetVar(name);
    var.name = program_.UniqueName(name);
    var.dtype = dtype;
    var.persistable = var.is_parameter = false;
    return block->CreateVar(std::move(var))->name;
  }

  void AppendRounding(const std::string& exact, const std::string& out, DType half,
                      const Op& origin, Block* block) {
    const std::string narrow = MakeLike(block, out, half);
    AppendCast(exact, DType::kFloat32, narrow, half, origin, block);
    AppendCast(narrow, half, out, DType::kFloat32, origin, block);
  }

  static void AppendCast(const std::string& x, DType from, const std::string& out, DType to,
                         const Op& origin, Block* block) {
    Op cast("cast");
    cast.SetInput("X", {x}).SetOutput("Out", {out});
    cast.SetAttr("in_dtype", static_cast<int32_t>(from));
    cast.SetAttr("out_dtype", static_cast<int32_t>(to));
    if (origin.role() != kRoleForward) cast.SetAttr(kOpRoleAttr, origin.role() & ~kRoleLoss);
    block->AppendOp(std::move(cast));
  }

  const OpRegistry& registry_;
  Program& program_;
  std::map<const Var*, DType> halves_;
  std::map<std::string, DType> dtypes_;  // of new variables: what their numbers are rounded to
  std::map<const Block*, std::set<std::string>> sums_;
};

}  // namespace

std::unique_ptr<Program> RoundedLikeHalf(const OpRegistry& registry, const Program& program) {
  std::unique_ptr<Program> rounded = program.Clone();
  Rounding(registry, rounded.get()).Run();
  return rounded;
}

KernelNames WidenedInsteadOfNative(const OpRegistry& registry, PlaceKind place) {
  KernelNames forced;
  for (const std::string& type : registry.Types()) {
    for (const KernelDef& kernel : registry.Kernels(type)) {
      if (kernel.name == kNativeHalfKernel && kernel.place == place) forced[type] = kWidened;
    }
  }
  return forced;
}

std::string NumberDifference(const Tensor& half, const Tensor& rounded) {
  const auto describe = [](const Tensor& tensor) {
    return StrCat(tensor.dtype(), " ", tensor.shape());
  };
  const bool fits = half.dtype() == rounded.dtype() ||
                    (IsHalf(half.dtype()) && rounded.dtype() == DType::kFloat32);
  if (!fits || half.shape() != rounded.shape()) {
    return StrCat("is ", describe(half), " in half and ", describe(rounded), " in float32");
  }
  const std::vector<double> a = ToArray(half).values;
  const std::vector<double> b = ToArray(rounded).values;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint64_t>(a[i]) == std::bit_cast<uint64_t>(b[i])) continue;
    return StrCat("at ", i, " is ", a[i], " in half and ", b[i], " in float32, rounded");
  }
  return {};
}

}  // namespace skiff::harness
