#include "framework/transpiler/fuse_residual_layer_norm_pass.h"

#include <algorithm>
#include <map>
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
        forward_def_(context.registry.Find("bias_dropout_residual_layer_norm")),
        backward_def_(context.registry.Find("bias_dropout_residual_layer_norm_grad")),
        rewrite_(context, plan) {}

  int64_t Run() {
    if (forward_def_ == nullptr || backward_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (rewrite_.Is(i, "layer_norm")) TryForward(i);
      if (rewrite_.Is(i, "layer_norm_grad")) TryBackward(i);
    }
    const int64_t made = rewrite_.Apply();
    for (Instruction& instruction : plan_.instructions) {
      for (ValueId& input : instruction.inputs) {
        const auto equal = equals_.find(input);
        if (equal != equals_.end()) input = equal->second;
      }
    }
    return made;
  }

 private:
  static constexpr size_t kNobody = PlanRewrite::kNobody;

  // One side of the sum, from its begin to the sum; or of the sum's gradient, the other way.
  struct Branch {
    ValueId x;  // where it begins, or its gradient
    size_t bias = kNobody;
    size_t dropout = kNobody;

    std::vector<size_t> instructions() const {
      std::vector<size_t> found;
      for (const size_t i : {bias, dropout}) {
        if (i != kNobody) found.push_back(i);
      }
      return found;
    }
  };

  const Instruction& At(size_t i) const { return plan_.instructions[i]; }

  // Whether an elementwise_add, or its gradient, is of something of this shape and a number for
  // each element of a row.
  bool IsRowBias(size_t i, const Shape& shape) const {
    return rewrite_.ShapeOf(At(i).InputIn("X")) == shape && rewrite_.AddsToRows(At(i));
  }

  bool IsSumOfTwo(size_t i, const Shape& shape) const {
    const ValueId x = At(i).InputIn("X");
    const ValueId y = At(i).InputIn("Y");
    return x && y && x != y && rewrite_.ShapeOf(x) == shape && rewrite_.ShapeOf(y) == shape;
  }

  bool NormalizesRows(const Instruction& norm) const {
    const int64_t rank = rewrite_.ShapeOf(norm.InputIn("X")).rank();
    return ContextOf(plan_, norm).IntAttr("begin_norm_axis") == rank - 1;
  }

  bool IsArena(ValueId value) const { return plan_[value].storage == Storage::kArena; }

  // What leads to `value`, which instruction `reader` alone reads.
  Branch BranchTo(ValueId value, size_t reader) const {
    Branch branch{.x = value};
    const size_t dropout = rewrite_.WriterOf(value);
    if (dropout != kNobody && rewrite_.Is(dropout, "dropout") &&
        rewrite_.OnlyReader(value) == reader && !At(dropout).InputIn("Seed")) {
      branch.dropout = reader = dropout;
      branch.x = At(dropout).InputIn("X");
    }
    const size_t bias = rewrite_.WriterOf(branch.x);
    if (bias != kNobody && rewrite_.Is(bias, "elementwise_add") &&
        rewrite_.OnlyReader(branch.x) == reader && IsRowBias(bias, rewrite_.ShapeOf(value))) {
      branch.bias = bias;
      branch.x = At(bias).InputIn("X");
    }
    return branch;
  }

  AttributeMap AttrsOf(const Instruction& norm, const Branch& branch) const {
    AttributeMap attrs = {{"epsilon", *EffectiveAttr(*norm.op, *norm.def->FindAttr("epsilon"))}};
    if (branch.dropout == kNobody) return attrs;
    const Instruction& dropout = At(branch.dropout);
    for (const AttrDef& attr : dropout.def->attrs) {
      attrs[attr.name] = *EffectiveAttr(*dropout.op, attr);
    }
    return attrs;
  }

  void TryForward(size_t at) {
    const Instruction& norm = At(at);
    const ValueId sum = norm.InputIn("X");
    const size_t add = rewrite_.WriterOf(sum);
    if (!NormalizesRows(norm) || add == kNobody || !rewrite_.Is(add, "elementwise_add") ||
        !IsSumOfTwo(add, rewrite_.ShapeOf(sum))) {
      return;
    }
    ValueId residual = At(add).InputIn("Y");
    Branch branch = BranchTo(At(add).InputIn("X"), add);
    const Branch other = BranchTo(residual, add);
    if (other.instructions().size() > branch.instructions().size()) {
      residual = At(add).InputIn("X");
      branch = other;
    }
    FuseForward(at, add, branch, residual);
  }

  void FuseForward(size_t at, size_t add, const Branch& branch, ValueId residual) {
    const Instruction& norm = At(at);
    const ValueId sum = norm.InputIn("X");
    const ValueId mask =
        branch.dropout == kNobody ? ValueId() : At(branch.dropout).OutputIn("Mask");
    std::vector<size_t> dropped = branch.instructions();
    dropped.push_back(add);
    const SlotValues inputs = {
        {"X", branch.x},
        {"Bias", branch.bias == kNobody ? ValueId() : At(branch.bias).InputIn("Y")},
        {"Residual", residual},
        {"LnScale", norm.InputIn("Scale")},
        {"LnBias", norm.InputIn("Bias")}};
    std::vector<ValueId> touched = {sum, mask};
    for (const auto& [slot, value] : inputs) touched.push_back(value);
    if (WritesScopeOf(plan_, touched, std::ranges::min(dropped) + 1, at) || IsReadBefore(sum, at) ||
        IsReadBefore(mask, at)) {
      return;
    }
    const bool needs_sum = rewrite_.OnlyReader(sum) != at;
    const bool needs_mask = mask && (!IsArena(mask) || !rewrite_.ReadersOf(mask).empty());
    Instruction fused = MakeInstruction(&plan_, *forward_def_,
                                        branch.dropout == kNobody ? norm : At(branch.dropout),
                                        AttrsOf(norm, branch), inputs,
                                        {{"Y", norm.OutputIn("Y")},
                                         {"Sum", needs_sum ? sum : ValueId()},
                                         {"Mask", needs_mask ? mask : ValueId()},
                                         {"Mean", norm.OutputIn("Mean")},
                                         {"Variance", norm.OutputIn("Variance")}});
    Replace(at, dropped, std::move(fused));
  }

  bool IsReadBefore(ValueId value, size_t at) const {
    if (!value) return false;
    const std::vector<size_t>& readers = rewrite_.ReadersOf(value);
    return !readers.empty() && readers.front() < at;
  }

  void Replace(size_t at, const std::vector<size_t>& dropped, Instruction fused) {
    if (!rewrite_.HasKernel(fused)) return;
    rewrite_.Replace(at, std::move(fused));
    for (const size_t i : dropped) rewrite_.Drop(i);
  }

  // What follows from `gradient`, as far as each gradient is read by the next instruction alone.
  Branch BranchFrom(ValueId gradient, size_t norm_grad) const {
    Branch branch{.x = gradient};
    const size_t dropout = rewrite_.OnlyReader(gradient);
    if (dropout != kNobody && rewrite_.Is(dropout, "dropout_grad") &&
        HasMask(At(dropout), norm_grad) && MayMove(At(dropout))) {
      branch.dropout = dropout;
      branch.x = At(dropout).OutputIn("X@GRAD");
    }
    const size_t bias = rewrite_.OnlyReader(branch.x);
    if (bias != kNobody && rewrite_.Is(bias, "elementwise_add_grad") &&
        IsRowBias(bias, rewrite_.ShapeOf(gradient)) && MayMove(At(bias))) {
      branch.bias = bias;
      branch.x = At(bias).OutputIn("X@GRAD");
    }
    return branch;
  }

  // Whether the mask of a dropout_grad, if it has one, is there when instruction `at` runs.
  bool HasMask(const Instruction& dropout, size_t at) const {
    const ValueId mask = dropout.InputIn("Mask");
    const size_t writer = mask ? rewrite_.WriterOf(mask) : kNobody;
    return !mask || (IsArena(mask) && writer != kNobody && writer < at);
  }

  // Whether an instruction may write its outputs earlier.
  bool MayMove(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.outputs,
                               [&](ValueId output) { return !output || IsArena(output); });
  }

  // The gradient of a sum that others than the norm read: an addition of two gradients.
  struct Addition {
    size_t at = kNobody;
    ValueId other;  // what is added to the norm's
    ValueId total;
  };

  // What is added to the gradient of the norm `norm_grad`: nothing if the sum isn't read by others.
  Addition AdditionTo(ValueId gradient, size_t norm_grad) const {
    const size_t at = rewrite_.OnlyReader(gradient);
    if (at == kNobody || !rewrite_.Is(at, "sum") || At(at).inputs.size() != 2) {
      return {.total = gradient};
    }
    const std::vector<ValueId>& terms = At(at).inputs;
    const ValueId other = terms[0] == gradient ? terms[1] : terms[0];
    const size_t writer = rewrite_.WriterOf(other);
    const bool is_there = IsArena(other) && writer != kNobody && writer < norm_grad;
    if (other == gradient || !is_there || rewrite_.ShapeOf(other) != rewrite_.ShapeOf(gradient)) {
      return {.total = gradient};
    }
    return {.at = at, .other = other, .total = At(at).OutputIn("Out")};
  }

  void TryBackward(size_t at) {
    const Instruction& norm = At(at);
    const Addition addition = AdditionTo(norm.OutputIn("X@GRAD"), at);
    const ValueId sum_gradient = addition.total;
    const size_t add = rewrite_.OnlyReader(sum_gradient);
    if (!NormalizesRows(norm) || add == kNobody || !rewrite_.Is(add, "elementwise_add_grad") ||
        !IsSumOfTwo(add, rewrite_.ShapeOf(sum_gradient)) || !MayMove(At(add))) {
      return;
    }
    ValueId residual = At(add).OutputIn("Y@GRAD");
    Branch branch = BranchFrom(At(add).OutputIn("X@GRAD"), at);
    const Branch other = BranchFrom(residual, at);
    if (other.instructions().size() > branch.instructions().size()) {
      residual = At(add).OutputIn("X@GRAD");
      branch = other;
    }
    FuseBackward(at, addition, add, branch, residual);
  }

  void FuseBackward(size_t at, const Addition& addition, size_t add, const Branch& branch,
                    ValueId residual) {
    const Instruction& norm = At(at);
    const bool has_bias = branch.bias != kNobody;
    const bool is_equal = branch.dropout == kNobody && branch.x && residual && MayRename(residual);
    std::vector<size_t> dropped = branch.instructions();
    dropped.push_back(add);
    if (addition.at != kNobody) dropped.push_back(addition.at);
    SlotValues inputs = {
        {"Sum@GRAD", addition.other},
        {"Sum", norm.InputIn("X")},
        {"Mask", branch.dropout == kNobody ? ValueId() : At(branch.dropout).InputIn("Mask")},
        {"Bias", has_bias ? At(branch.bias).InputIn("Y") : ValueId()},
        {"LnScale", norm.InputIn("Scale")},
        {"LnBias", norm.InputIn("Bias")}};
    for (const char* slot : {"Mean", "Variance", "Y@GRAD"}) {
      inputs.emplace_back(slot, norm.InputIn(slot));
    }
    Instruction fused =
        MakeInstruction(&plan_, *backward_def_, norm, AttrsOf(norm, branch), inputs,
                        {{"X@GRAD", branch.x},
                         {"Bias@GRAD", has_bias ? At(branch.bias).OutputIn("Y@GRAD") : ValueId()},
                         {"Residual@GRAD", is_equal ? ValueId() : residual},
                         {"LnScale@GRAD", norm.OutputIn("Scale@GRAD")},
                         {"LnBias@GRAD", norm.OutputIn("Bias@GRAD")}});
    if (!rewrite_.HasKernel(fused)) return;
    Replace(at, dropped, std::move(fused));
    if (is_equal) equals_[residual] = branch.x;
  }

  // Whether all who read the value may read another one instead.
  bool MayRename(ValueId value) const {
    const std::vector<size_t>& readers = rewrite_.ReadersOf(value);
    return !plan_[value].is_checkpoint &&
           (readers.empty() || readers.back() < plan_.instructions.size());
  }

  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  PlanRewrite rewrite_;
  std::map<ValueId, ValueId> equals_;  // what to read instead of a value that isn't written
};

}  // namespace

PassReport FuseResidualLayerNormPass::Apply(const PassContext& context, Plan* plan) const {
  const int64_t made = Fusion(context, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
