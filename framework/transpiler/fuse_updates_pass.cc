#include "framework/transpiler/fuse_updates_pass.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/op/list_kernel.h"

namespace skiff {
namespace {

class Fusion {
 public:
  Fusion(const OpRegistry& registry, Plan* plan)
      : registry_(registry),
        plan_(*plan),
        uses_(*plan),
        group_of_(plan->instructions.size(), kNobody) {}

  // Fused instructions made, and ops in them.
  std::pair<int64_t, int64_t> Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (!IsUpdate(plan_.instructions[i])) continue;
      if (!JoinWriter(i)) Start(i);
    }
    int64_t fused = 0;
    int64_t ops = 0;
    for (const Group& group : groups_) {
      if (group.members.size() < 2) continue;
      ++fused;
      ops += static_cast<int64_t>(group.members.size());
    }
    if (fused > 0) Rewrite();
    return {fused, ops};
  }

 private:
  static constexpr size_t kNobody = PlanUses::kNobody;

  struct Group {
    std::vector<size_t> members;                 // the first one is where they stand
    std::unordered_set<std::string_view> names;  // of the variables that they read or write
  };

  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

  // By what a plan says; whether it has a ListKernel is asked where it matters.
  bool IsUpdate(const Instruction& instruction) const {
    return instruction.kind == InstructionKind::kOp && instruction.def->update.has_value() &&
           !MustStay(instruction) && plan_.ForcedKernel(instruction.def->type).empty();
  }

  void Start(size_t i) {
    group_of_[i] = groups_.size();
    groups_.push_back({.members = {i}, .names = {}});
  }

  // Joins the group of the last one that writes what instruction i reads, if it may.
  bool JoinWriter(size_t i) {
    size_t writer = kNobody;
    for (int32_t input : plan_.instructions[i].inputs) {
      const size_t w = uses_.WriterOf(input);
      if (w == kNobody || group_of_[w] == kNobody) continue;
      if (writer == kNobody || w > writer) writer = w;
    }
    if (writer == kNobody) return false;
    Group& group = groups_[group_of_[writer]];
    if (group.names.empty()) AddNames(group.members.front(), &group);
    if (group.members.size() == kMaxListSteps || !HasListsOf(group, i) || !MayMoveTo(group, i) ||
        !ReadsWhereItIsWritten(group, i) || !HasKernels(group, i)) {
      return false;
    }
    AddNames(i, &group);
    group_of_[i] = group_of_[writer];
    group.members.push_back(i);
    return true;
  }

  static const std::vector<std::string>& Parameters(const Instruction& instruction) {
    return instruction.op->Input(instruction.def->update->lists.front());
  }

  // As many elements in each argument.
  bool HasListsOf(const Group& group, size_t i) const {
    const Instruction& first = plan_.instructions[group.members.front()];
    const Instruction& own = plan_.instructions[i];
    const size_t count = Parameters(first).size();
    if (Parameters(own).size() != count) return false;
    for (size_t k = 0; k < count; ++k) {
      const auto elements = [&](const Instruction& instruction) {
        const int32_t value = instruction.InputIn(instruction.def->update->lists.front(), k);
        return uses_.ShapeOf(value).element_count();
      };
      if (elements(first) != elements(own)) return false;
    }
    return true;
  }

  // Whether it may stand right behind the group: nothing in between has to come before it.
  bool MayMoveTo(const Group& group, size_t i) {
    if (!before_) before_ = Dependencies(plan_);
    const size_t g = group_of_[group.members.front()];
    return std::ranges::all_of((*before_)[i], [&](size_t earlier) {
      return earlier <= group.members.front() || group_of_[earlier] == g;
    });
  }

  // Whether what it reads of the group is at one place in both's lists of elements, and what it
  // writes are variables of the scope that nobody in the group touches.
  bool ReadsWhereItIsWritten(const Group& group, size_t i) const {
    const Instruction& own = plan_.instructions[i];
    const bool writes_own = std::ranges::all_of(own.outputs, [&](int32_t output) {
      return output >= 0 && ValueOf(output).storage == Storage::kScope &&
             !group.names.contains(ValueOf(output).name);
    });
    if (!writes_own) return false;
    // From a value to its place in the lists.
    std::unordered_map<int32_t, size_t> reads;
    for (const std::string& slot : own.def->update->lists) {
      if (IsScalar(own, slot)) continue;
      for (size_t k = 0; k < own.op->Input(slot).size(); ++k)
        reads.emplace(own.InputIn(slot, k), k);
    }
    std::unordered_map<int32_t, size_t> writes;
    std::unordered_set<int32_t> written;
    for (size_t member : group.members) {
      const Instruction& instruction = plan_.instructions[member];
      written.insert(instruction.outputs.begin(), instruction.outputs.end());
      AddElements(instruction, &writes);
    }
    std::unordered_set<int32_t> seen;
    return std::ranges::all_of(own.inputs, [&](int32_t input) {
      if (input < 0 || !written.contains(input)) return true;
      const auto from = writes.find(input);
      const auto to = reads.find(input);
      return from != writes.end() && to != reads.end() && from->second == to->second &&
             seen.insert(input).second;
    });
  }

  static bool IsScalar(const Instruction& instruction, const std::string& slot) {
    return std::ranges::count(instruction.def->update->scalars, slot) > 0;
  }

  // Where each value stands that the instruction writes element by element.
  static void AddElements(const Instruction& instruction,
                          std::unordered_map<int32_t, size_t>* element_of) {
    for (const auto& [input, output] : instruction.def->in_place) {
      if (IsScalar(instruction, input)) continue;
      for (size_t k = 0; k < instruction.op->Output(output).size(); ++k) {
        element_of->emplace(instruction.OutputIn(output, k), k);
      }
    }
  }

  void AddNames(size_t i, Group* group) const {
    const Instruction& instruction = plan_.instructions[i];
    for (const auto* values : {&instruction.inputs, &instruction.outputs}) {
      for (int32_t value : *values) {
        if (value >= 0) group->names.insert(ValueOf(value).name);
      }
    }
  }

  // Whether both have ListKernels, and the one that joins needs nothing before the elements.
  bool HasKernels(const Group& group, size_t i) const {
    const std::unique_ptr<Kernel> own = PreparedKernel(i);
    const auto* list = dynamic_cast<const ListKernel*>(own.get());
    if (list == nullptr || list->begins_with_elements()) return false;
    if (group.members.size() > 1) return true;
    const std::unique_ptr<Kernel> first = PreparedKernel(group.members.front());
    return dynamic_cast<const ListKernel*>(first.get()) != nullptr;
  }

  // nullptr if there is none, or it is one for selected rows.
  std::unique_ptr<Kernel> PreparedKernel(size_t i) const {
    PrepareContext context = ContextOf(plan_, plan_.instructions[i]);
    const KernelDef* kernel = registry_.FindKernel(context);
    if (kernel == nullptr || kernel->selected_rows) return nullptr;
    std::unique_ptr<Kernel> prepared = kernel->prepare(context);
    return context.derived_forms().empty() ? std::move(prepared) : nullptr;
  }

  Instruction Fused(const Group& group) const {
    Instruction fused = plan_.instructions[group.members.front()];
    fused.kind = InstructionKind::kInStep;
    fused.inputs.clear();
    fused.outputs.clear();
    std::unordered_set<int32_t> known;  // what is read or written already
    for (size_t member : group.members) {
      const Instruction& instruction = plan_.instructions[member];
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        const int32_t input = instruction.inputs[j];
        if (input < 0 || !instruction.reads_data[j] || !known.insert(input).second) continue;
        fused.inputs.push_back(input);
      }
      for (int32_t output : instruction.outputs) {
        if (output < 0) continue;
        known.insert(output);
        fused.outputs.push_back(output);
      }
      fused.members.push_back(instruction);
    }
    fused.reads_data.assign(fused.inputs.size(), true);
    return fused;
  }

  void Rewrite() {
    std::vector<Instruction> rewritten;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Group* group = group_of_[i] == kNobody ? nullptr : &groups_[group_of_[i]];
      if (group == nullptr || group->members.size() < 2) {
        rewritten.push_back(plan_.instructions[i]);
      } else if (group->members.front() == i) {
        rewritten.push_back(Fused(*group));
      }
    }
    plan_.instructions = std::move(rewritten);
    plan_.CoverWithOneSegment();
  }

  const OpRegistry& registry_;
  Plan& plan_;
  PlanUses uses_;
  std::vector<size_t> group_of_;  // by instruction
  std::vector<Group> groups_;
  std::optional<std::vector<std::vector<size_t>>> before_;  // Dependencies, once they are needed
};

}  // namespace

PassReport FuseUpdatesPass::Apply(const OpRegistry& registry, Plan* plan) const {
  SKIFF_ENFORCE(plan->reuse == ReusePolicy::kNone, kFailedPrecondition,
                "fuse_updates: memory_reuse has run, expected to run before it");
  const auto [fused, ops] =
      plan->place.is_cpu() ? Fusion(registry, plan).Run() : std::pair<int64_t, int64_t>();
  return {.pass = {},
          .changes = fused,
          .summary = StrCat(ops, " updates and averages in ", fused, " loops")};
}

}  // namespace skiff
