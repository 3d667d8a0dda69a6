#include "framework/transpiler/fuse_batch_norm_act_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

class Fusion {
 public:
  Fusion(const OpRegistry& registry, Plan* plan)
      : registry_(registry),
        plan_(*plan),
        forward_def_(registry.Find("batch_norm_act")),
        backward_def_(registry.Find("batch_norm_act_grad")),
        readers_(DataReaders(*plan)),
        writer_(plan->values.size(), kNobody) {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      for (int32_t output : plan_.instructions[i].outputs) {
        if (output >= 0) writer_[static_cast<size_t>(output)] = i;
      }
    }
  }

  int64_t Run() {
    if (forward_def_ == nullptr || backward_def_ == nullptr) return 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (Is(i, "relu")) TryForward(i);
      if (Is(i, "relu_grad")) TryBackward(i);
    }
    const auto made = static_cast<int64_t>(made_.size());
    Rewrite();
    return made;
  }

 private:
  static constexpr size_t kNobody = static_cast<size_t>(-1);
  // What a fused forward instruction was made of.
  struct Forward {
    size_t norm = 0;
    size_t at = 0;  // where it stands
    size_t add = kNobody;
    int32_t sum = -1;  // what the addition read besides the normalized value
  };

  bool Is(size_t i, std::string_view type) const {
    const Instruction& instruction = plan_.instructions[i];
    return instruction.kind == InstructionKind::kOp && instruction.op->type == type &&
           plan_.ForcedKernel(type).empty();
  }

  bool HasKernel(const Instruction& instruction) const {
    return registry_.FindKernel(ContextOf(plan_, instruction)) != nullptr;
  }

  size_t WriterOf(int32_t value) const {
    return value < 0 ? kNobody : writer_[static_cast<size_t>(value)];
  }

  // The only instruction that reads the value's data, which lies in the arena.
  size_t OnlyReader(int32_t value) const {
    if (value < 0) return kNobody;
    const std::vector<size_t>& readers = readers_[static_cast<size_t>(value)];
    const bool in_arena = plan_.values[static_cast<size_t>(value)].storage == Storage::kArena;
    return in_arena && readers.size() == 1 && readers[0] < plan_.instructions.size() ? readers[0]
                                                                                     : kNobody;
  }

  const Shape& ShapeOf(int32_t value) const {
    return plan_.values[static_cast<size_t>(value)].meta.shape;
  }

  // The batch norm whose output is `value`, read by instruction `reader` alone.
  size_t NormFor(int32_t value, size_t reader) const {
    const size_t norm = WriterOf(value);
    if (norm == kNobody || !Is(norm, "batch_norm") || OnlyReader(value) != reader) return kNobody;
    return plan_.instructions[norm].OutputIn("Y") == value ? norm : kNobody;
  }

  void TryForward(size_t relu) {
    const int32_t x = plan_.instructions[relu].InputIn("X");
    Forward forward{.norm = NormFor(x, relu), .at = relu};
    if (forward.norm == kNobody) {
      const size_t add = WriterOf(x);
      if (add == kNobody || !Is(add, "elementwise_add") || OnlyReader(x) != relu) return;
      FindOperand(add, &forward);
      if (forward.norm == kNobody) return;
      forward.add = add;
    }
    if (!MayMove(forward)) return;
    const Instruction& norm = plan_.instructions[forward.norm];
    SlotValues inputs = {{"Z", forward.sum}};
    for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor"}) {
      inputs.emplace_back(slot, norm.InputIn(slot));
    }
    const int32_t y = plan_.instructions[relu].OutputIn("Out");
    SlotValues outputs = {{"Y", y}};
    for (const char* slot :
         {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace"}) {
      outputs.emplace_back(slot, norm.OutputIn(slot));
    }
    Instruction fused =
        MakeInstruction(&plan_, *forward_def_, norm, norm.op->attrs, inputs, outputs);
    if (!HasKernel(fused)) return;
    made_.emplace(relu, std::move(fused));
    dropped_.push_back(forward.norm);
    if (forward.add != kNobody) dropped_.push_back(forward.add);
    forwards_[y] = forward;
  }

  // The operand of the addition that a batch norm made; of two, the later one.
  void FindOperand(size_t add, Forward* forward) const {
    const Instruction& instruction = plan_.instructions[add];
    const int32_t operands[] = {instruction.InputIn("X"), instruction.InputIn("Y")};
    if (operands[0] < 0 || operands[1] < 0 || operands[0] == operands[1] ||
        ShapeOf(operands[0]) != ShapeOf(operands[1])) {
      return;
    }
    for (int k = 0; k < 2; ++k) {
      const size_t norm = NormFor(operands[k], add);
      if (norm == kNobody || (forward->norm != kNobody && norm < forward->norm)) continue;
      forward->norm = norm;
      forward->sum = operands[1 - k];
    }
  }

  // Whether the batch norm may run where the relu does.
  bool MayMove(const Forward& forward) const {
    const Instruction& norm = plan_.instructions[forward.norm];
    std::vector<int32_t> touched = norm.inputs;
    touched.push_back(forward.sum);
    for (int32_t output : norm.outputs) {
      touched.push_back(output);
      if (output < 0 || output == norm.OutputIn("Y")) continue;
      const std::vector<size_t>& readers = readers_[static_cast<size_t>(output)];
      if (!readers.empty() && readers.front() <= forward.at) return false;
    }
    return !WritesScopeOf(plan_, touched, forward.norm + 1, forward.at);
  }

  void TryBackward(size_t relu_grad) {
    const Instruction& outer = plan_.instructions[relu_grad];
    const auto found = forwards_.find(outer.InputIn("Out"));
    if (found == forwards_.end()) return;
    const Forward& forward = found->second;
    int32_t gradient = outer.OutputIn("X@GRAD");
    size_t at = OnlyReader(gradient);
    if (at == kNobody) return;
    std::optional<size_t> add_grad;
    int32_t sum_gradient = -1;
    if (forward.sum >= 0) {
      if (!Is(at, "elementwise_add_grad")) return;
      add_grad = at;
      const Instruction& add = plan_.instructions[at];
      const bool norm_is_x = add.InputIn("Y") == forward.sum;
      gradient = add.OutputIn(norm_is_x ? "X@GRAD" : "Y@GRAD");
      sum_gradient = add.OutputIn(norm_is_x ? "Y@GRAD" : "X@GRAD");
    }
    const size_t norm_grad = OnlyReader(gradient);
    if (norm_grad == kNobody || !Is(norm_grad, "batch_norm_grad")) return;
    if (!IsGradientOf(norm_grad, forward)) return;
    // What the addition hands on may be read before the batch norm's gradient runs.
    if (add_grad) at = *add_grad;
    const Instruction& inner = plan_.instructions[norm_grad];
    if (WritesScopeOf(plan_, inner.inputs, forward.at, at) ||
        WritesScopeOf(plan_, outer.inputs, relu_grad + 1, at) || !WritesArenaOnly(inner)) {
      return;
    }
    SlotValues inputs = {{"Y@GRAD", outer.InputIn("Out@GRAD")},
                         {"Y", forward.sum < 0 ? -1 : outer.InputIn("Out")}};
    for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance", "MeanOut", "VarianceOut",
                             "SavedMean", "SavedVariance", "ReserveSpace"}) {
      inputs.emplace_back(slot, inner.InputIn(slot));
    }
    SlotValues outputs = {{"Z@GRAD", sum_gradient}};
    for (const char* slot : {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}) {
      outputs.emplace_back(slot, inner.OutputIn(slot));
    }
    Instruction fused =
        MakeInstruction(&plan_, *backward_def_, inner, inner.op->attrs, inputs, outputs);
    if (!HasKernel(fused)) return;
    made_.emplace(at, std::move(fused));
    dropped_.insert(dropped_.end(), {relu_grad, norm_grad});
  }

  // Whether a batch_norm_grad reads what the fused batch norm read and saved.
  bool IsGradientOf(size_t norm_grad, const Forward& forward) const {
    const Instruction& inner = plan_.instructions[norm_grad];
    const Instruction& norm = plan_.instructions[forward.norm];
    const auto reads = [&](const char* slot, int32_t value) {
      return inner.InputIn(slot) == value;
    };
    return reads("X", norm.InputIn("X")) && reads("Scale", norm.InputIn("Scale")) &&
           reads("Bias", norm.InputIn("Bias")) &&
           (reads("SavedMean", norm.OutputIn("SavedMean")) ||
            reads("MeanOut", norm.OutputIn("MeanOut"))) &&
           std::ranges::all_of(inner.def->attrs, [&](const AttrDef& attr) {
             return SameAttribute(*EffectiveAttr(*inner.op, attr), *EffectiveAttr(*norm.op, attr));
           });
  }

  bool WritesArenaOnly(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.outputs, [&](int32_t output) {
      return output < 0 || plan_.values[static_cast<size_t>(output)].storage == Storage::kArena;
    });
  }

  void Rewrite() {
    std::vector<Instruction> rewritten;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto made = made_.find(i);
      if (made != made_.end()) {
        rewritten.push_back(std::move(made->second));
      } else if (std::ranges::count(dropped_, i) == 0) {
        rewritten.push_back(std::move(plan_.instructions[i]));
      }
    }
    plan_.instructions = std::move(rewritten);
  }

  const OpRegistry& registry_;
  Plan& plan_;
  const OpDef* forward_def_;
  const OpDef* backward_def_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<size_t> writer_;
  std::map<int32_t, Forward> forwards_;  // by the output of the relu
  std::map<size_t, Instruction> made_;   // by the index of the instruction it replaces
  std::vector<size_t> dropped_;
};

}  // namespace

PassReport FuseBatchNormActPass::Apply(const OpRegistry& registry, Plan* plan) const {
  const int64_t made = Fusion(registry, plan).Run();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
