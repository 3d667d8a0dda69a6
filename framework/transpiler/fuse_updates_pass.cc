#include "framework/transpiler/fuse_updates_pass.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/op/list_kernel.h"

namespace skiff {
namespace {

const std::string& ParameterSlot(const Instruction& instruction) {
  return instruction.def->update->lists.front();
}

bool IsScalar(const Instruction& instruction, const std::string& slot) {
  return std::ranges::count(instruction.def->update->scalars, slot) > 0;
}

// Whether it updates parameters or averages, by what the plan says.
bool IsUpdate(const Plan& plan, const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOp && instruction.def->update.has_value() &&
         !MustStay(instruction) && !ChecksData(instruction) &&
         plan.ForcedKernel(instruction.def->type).empty();
}

// Where each value stands that the instruction writes element by element, over its last value: what
// goes elsewhere may be copied there as a whole (a skipped update).
void AddElements(const Plan& plan, const Instruction& instruction,
                 std::unordered_map<int32_t, size_t>* element_of) {
  const auto name = [&](int32_t value) -> const std::string& {
    return plan.values[static_cast<size_t>(value)].name;
  };
  for (const auto& [input, output] : instruction.def->in_place) {
    if (IsScalar(instruction, input)) continue;
    for (size_t k = 0; k < instruction.op->Output(output).size(); ++k) {
      const int32_t from = instruction.InputIn(input, k);
      const int32_t to = instruction.OutputIn(output, k);
      if (from >= 0 && to >= 0 && name(from) == name(to)) element_of->emplace(to, k);
    }
  }
}

// Its ListKernel; nullptr if there is none, or it is one for selected rows.
std::unique_ptr<ListKernel> ListKernelOf(const OpRegistry& registry, const Plan& plan,
                                         const Instruction& instruction) {
  PrepareContext context = ContextOf(plan, instruction);
  const KernelDef* kernel = registry.FindKernel(context);
  if (kernel == nullptr || kernel->selected_rows) return nullptr;
  std::unique_ptr<Kernel> prepared = kernel->prepare(context);
  auto* list = dynamic_cast<ListKernel*>(prepared.get());
  if (list == nullptr || !context.derived_forms().empty()) return nullptr;
  prepared.release();
  return std::unique_ptr<ListKernel>(list);
}

// Cuts averages of parameters that several ops update into one op for each of these, in the order
// of that one's lists, and one for the rest.
class Splitting {
 public:
  // An average, and an update whose parameters are to stay in its rest.
  using Refused = std::set<std::pair<const Op*, const Op*>>;

  // An instruction that was made for the parameters of an update.
  struct Made {
    size_t position = 0;
    std::pair<const Op*, const Op*> key;  // of Refused
  };

  Splitting(const OpRegistry& registry, const Refused& refused, Plan* plan)
      : registry_(registry), refused_(refused), plan_(*plan), uses_(*plan) {}

  std::vector<Made> Run() {
    std::vector<Made> made;
    std::vector<Instruction> instructions;
    for (const Instruction& instruction : plan_.instructions) {
      const std::vector<Part> parts = PartsOf(instruction);
      if (parts.empty()) instructions.push_back(instruction);
      for (const Part& part : parts) {
        if (part.writer != nullptr) {
          made.push_back({instructions.size(), {instruction.op, part.writer->op}});
        }
        instructions.push_back(Cut(instruction, part.arguments));
      }
    }
    if (made.empty()) return made;
    plan_.instructions = std::move(instructions);
    plan_.CoverWithOneSegment();
    return made;
  }

 private:
  struct Part {
    const Instruction* writer = nullptr;  // nullptr: the rest
    std::vector<size_t> arguments;        // by their place in the lists
  };

  // Empty: it stays whole.
  std::vector<Part> PartsOf(const Instruction& instruction) const {
    if (!IsUpdate(plan_, instruction) || !HasPlainLists(instruction)) return {};
    const std::string& slot = ParameterSlot(instruction);
    const size_t count = instruction.op->Input(slot).size();
    std::map<size_t, std::vector<size_t>> by_writer;
    for (size_t k = 0; k < count; ++k) {
      by_writer[uses_.WriterOf(instruction.InputIn(slot, k))].push_back(k);
    }
    if (count < 2 || by_writer.begin()->first == PlanUses::kNobody ||
        ListKernelOf(registry_, plan_, instruction) == nullptr) {
      return {};
    }
    std::vector<Part> parts;
    Part rest;
    for (auto& [writer, arguments] : by_writer) {
      const Instruction* update =
          writer == PlanUses::kNobody ? nullptr : &plan_.instructions[writer];
      if (update != nullptr && !refused_.contains({instruction.op, update->op}) &&
          OrderAs(*update, instruction, &arguments)) {
        parts.push_back({update, std::move(arguments)});
      } else {
        rest.arguments.insert(rest.arguments.end(), arguments.begin(), arguments.end());
      }
    }
    const bool is_whole = parts.empty() || (parts.size() == 1 && rest.arguments.empty() &&
                                            std::ranges::is_sorted(parts[0].arguments));
    if (is_whole) return {};
    std::ranges::sort(rest.arguments);
    if (!rest.arguments.empty()) parts.push_back(std::move(rest));
    return parts;
  }

  // Whether what has several arguments is a list, and none of them is left out.
  static bool HasPlainLists(const Instruction& instruction) {
    const std::vector<std::string>& lists = instruction.def->update->lists;
    const bool has_lists = std::ranges::all_of(instruction.op->inputs, [&](const auto& slot) {
      return slot.arguments.size() < 2 || std::ranges::count(lists, slot.slot) > 0;
    });
    return has_lists && std::ranges::count(instruction.outputs, -1) == 0;
  }

  // Brings the arguments into the order in which `writer` has them; false unless it is an update,
  // and of nothing else.
  bool OrderAs(const Instruction& writer, const Instruction& instruction,
               std::vector<size_t>* arguments) const {
    if (!IsUpdate(plan_, writer) ||
        writer.op->Input(ParameterSlot(writer)).size() != arguments->size() ||
        ListKernelOf(registry_, plan_, writer) == nullptr) {
      return false;
    }
    std::unordered_map<int32_t, size_t> places;
    AddElements(plan_, writer, &places);
    std::vector<size_t> ordered(arguments->size(), PlanUses::kNobody);
    for (size_t k : *arguments) {
      const auto place = places.find(instruction.InputIn(ParameterSlot(instruction), k));
      if (place == places.end() || ordered[place->second] != PlanUses::kNobody) return false;
      ordered[place->second] = k;
    }
    *arguments = std::move(ordered);
    return true;
  }

  Instruction Cut(const Instruction& whole, const std::vector<size_t>& arguments) {
    const size_t count = whole.op->Input(ParameterSlot(whole)).size();
    AttributeMap attrs = whole.op->attrs;
    for (const std::string& name : whole.def->update->list_attrs) {
      if (attrs.contains(name)) Pick(arguments, count, &attrs.at(name));
    }
    const auto picked = [&](const std::vector<SlotDef>& slots, const auto& names_of,
                            const auto& value_in, const auto& is_list) {
      SlotValues values;
      for (const SlotDef& slot : slots) {
        const size_t size = names_of(slot.name).size();
        const bool picks = is_list(slot.name) && size == count;
        for (size_t k = 0; k < (picks ? arguments.size() : size); ++k) {
          values.emplace_back(slot.name, value_in(slot.name, picks ? arguments[k] : k));
        }
      }
      return values;
    };
    const UpdateRule& rule = *whole.def->update;
    const SlotValues inputs = picked(
        whole.def->inputs,
        [&](const std::string& slot) -> const auto& { return whole.op->Input(slot); },
        [&](const std::string& slot, size_t k) { return whole.InputIn(slot, k); },
        [&](const std::string& slot) { return std::ranges::count(rule.lists, slot) > 0; });
    const SlotValues outputs = picked(
        whole.def->outputs,
        [&](const std::string& slot) -> const auto& { return whole.op->Output(slot); },
        [&](const std::string& slot, size_t k) { return whole.OutputIn(slot, k); },
        [&](const std::string& slot) {
          return std::ranges::count(whole.def->in_place, slot, &InPlace::second) > 0;
        });
    return MakeInstruction(&plan_, *whole.def, whole, attrs, inputs, outputs);
  }

  using InPlace = std::pair<std::string, std::string>;

  // Of a list of one entry a parameter those of the arguments.
  static void Pick(const std::vector<size_t>& arguments, size_t count, Attribute* attr) {
    const auto pick = [&](auto* list) {
      if (list == nullptr || list->size() != count) return;
      std::remove_pointer_t<decltype(list)> picked;
      for (size_t k : arguments) picked.push_back((*list)[k]);
      *list = std::move(picked);
    };
    pick(std::get_if<std::vector<float>>(attr));
    pick(std::get_if<std::vector<std::string>>(attr));
  }

  const OpRegistry& registry_;
  const Refused& refused_;
  Plan& plan_;
  PlanUses uses_;
};

class Fusion {
 public:
  Fusion(const OpRegistry& registry, Plan* plan)
      : registry_(registry),
        plan_(*plan),
        uses_(*plan),
        group_of_(plan->instructions.size(), kNobody) {}

  // Finds what is to be fused.
  void Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (!IsUpdate(plan_, plan_.instructions[i])) continue;
      if (!JoinWriter(i)) Start(i);
    }
  }

  bool IsFused(size_t i) const {
    return group_of_[i] != kNobody && groups_[group_of_[i]].members.size() > 1;
  }

  // Fused instructions made, and ops in them.
  std::pair<int64_t, int64_t> Rewrite() {
    std::vector<Instruction> rewritten;
    int64_t fused = 0;
    int64_t ops = 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (!IsFused(i)) {
        rewritten.push_back(plan_.instructions[i]);
        continue;
      }
      ++ops;
      const Group& group = groups_[group_of_[i]];
      if (group.members.front() != i) continue;
      ++fused;
      rewritten.push_back(Fused(group));
    }
    plan_.instructions = std::move(rewritten);
    plan_.CoverWithOneSegment();
    return {fused, ops};
  }

 private:
  static constexpr size_t kNobody = PlanUses::kNobody;

  struct Group {
    std::vector<size_t> members;                 // the first one is where they stand
    std::unordered_set<std::string_view> names;  // of the variables that they read or write
  };

  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

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
    if (group.members.size() == kMaxListSteps ||
        !WritesScope(plan_.instructions[group.members.front()]) || !HasListsOf(group, i) ||
        !MayMoveTo(group, i) || !ReadsWhereItIsWritten(group, i) || !HasKernels(group, i)) {
      return false;
    }
    AddNames(i, &group);
    group_of_[i] = group_of_[writer];
    group.members.push_back(i);
    return true;
  }

  // As many elements in each argument.
  bool HasListsOf(const Group& group, size_t i) const {
    const Instruction& first = plan_.instructions[group.members.front()];
    const Instruction& own = plan_.instructions[i];
    const size_t count = first.op->Input(ParameterSlot(first)).size();
    if (own.op->Input(ParameterSlot(own)).size() != count) return false;
    for (size_t k = 0; k < count; ++k) {
      const auto elements = [&](const Instruction& instruction) {
        return uses_.ShapeOf(instruction.InputIn(ParameterSlot(instruction), k)).element_count();
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
    const bool writes_own = std::ranges::all_of(
        own.outputs, [&](int32_t output) { return !group.names.contains(ValueOf(output).name); });
    if (!WritesScope(own) || !writes_own) return false;
    // From a value to its place in the lists.
    std::unordered_map<int32_t, size_t> reads;
    for (const std::string& slot : own.def->update->lists) {
      if (IsScalar(own, slot) || IsMovedOn(own, slot)) continue;
      for (size_t k = 0; k < own.op->Input(slot).size(); ++k)
        reads.emplace(own.InputIn(slot, k), k);
    }
    std::unordered_map<int32_t, size_t> writes;
    std::unordered_set<int32_t> written;
    for (size_t member : group.members) {
      const Instruction& instruction = plan_.instructions[member];
      written.insert(instruction.outputs.begin(), instruction.outputs.end());
      AddElements(plan_, instruction, &writes);
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

  bool WritesScope(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.outputs, [&](int32_t output) {
      return output >= 0 && ValueOf(output).storage == Storage::kScope;
    });
  }

  // Whether the op may copy what is in the slot as a whole to where its next value goes.
  static bool IsMovedOn(const Instruction& instruction, const std::string& slot) {
    return std::ranges::any_of(instruction.def->in_place,
                               [&](const auto& pair) { return pair.first == slot; });
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
    const auto own = ListKernelOf(registry_, plan_, plan_.instructions[i]);
    if (own == nullptr || own->begins_with_elements()) return false;
    return group.members.size() > 1 ||
           ListKernelOf(registry_, plan_, plan_.instructions[group.members.front()]) != nullptr;
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
  const bool has_updates = std::ranges::any_of(
      plan->instructions,
      [&](const Instruction& instruction) { return IsUpdate(*plan, instruction); });
  if (!has_updates || !plan->place.is_cpu()) {
    return {.pass = {}, .changes = 0, .summary = "nothing to fuse"};
  }
  Splitting::Refused refused;
  for (;;) {
    Plan changed = *plan;
    const std::vector<Splitting::Made> parts = Splitting(registry, refused, &changed).Run();
    Fusion fusion(registry, &changed);
    fusion.Run();
    const size_t known = refused.size();
    for (const Splitting::Made& part : parts) {
      if (!fusion.IsFused(part.position)) refused.insert(part.key);
    }
    // What was cut in vain is done again as a whole.
    if (refused.size() > known) continue;
    const auto [fused, ops] = fusion.Rewrite();
    if (fused > 0) *plan = std::move(changed);
    return {.pass = {},
            .changes = fused,
            .summary = StrCat(ops, " updates and averages in ", fused, " loops")};
  }
}

}  // namespace skiff
