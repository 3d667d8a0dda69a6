#include "framework/transpiler/placement_pass.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/argument_places.h"
#include "framework/analysis/body_places.h"
#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"
#include "framework/op/device_sum.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

class Placement {
 public:
  Placement(const PassContext& context, Plan* plan) : context_(context), plan_(*plan) {}

  PassReport Run() {
    PlaceArrays();
    FindOpsForHost();
    std::vector<Instruction> instructions = std::exchange(plan_.instructions, {});
    for (size_t i = 0; i < instructions.size(); ++i) {
      Add(std::move(instructions[i]), is_for_host_[i]);
    }
    plan_.instructions = std::move(placed_);
    return {.pass = {},
            .changes = on_host_ + copies_,
            .summary = StrCat(on_host_, " instructions on the CPU, ", copies_, " copies")};
  }

 private:
  void Add(Instruction instruction, bool is_for_host) {
    if (instruction.kind == InstructionKind::kCopy) {
      PlaceCopy(&instruction);
      placed_.push_back(std::move(instruction));
      return;
    }
    const bool runs_on_device = !is_for_host && RunsOnDevice(instruction);
    instruction.place = runs_on_device ? plan_.place : Place::Cpu();
    if (!runs_on_device && instruction.kind == InstructionKind::kLoop) MoveToCpu(&instruction);
    if (instruction.place.is_cpu()) ++on_host_;
    MoveInputs(&instruction);
    std::vector<Instruction> after = PlaceOutputs(&instruction);
    placed_.push_back(std::move(instruction));
    std::ranges::move(after, std::back_inserter(placed_));
  }

  // ---- arrays

  // Arrays have one place in the whole plan: the device, if all that use them can run there.
  // Several segments of a program may have the same array, and don't know of each other.
  void PlaceArrays() {
    for (const ValueId id : plan_.ids()) {
      const bool is_of_caller =
          std::ranges::count(plan_.feeds, id) > 0 || std::ranges::count(plan_.fetches, id) > 0;
      if (plan_[id].meta.is_array && (context_.is_segment || is_of_caller)) {
        arrays_on_host_.insert(KeyOf(id));
      }
    }
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (const Instruction& instruction : plan_.instructions) {
        if (instruction.def->is_on_host) continue;  // looks at what the host knows of it
        const std::vector<std::string> arrays = ArraysOf(instruction);
        if (arrays.empty() || RunsOnDevice(instruction)) continue;
        for (const std::string& array : arrays) has_changed |= arrays_on_host_.insert(array).second;
      }
    }
    for (const ValueId id : plan_.ids()) {
      if (!plan_[id].meta.is_array) continue;
      const bool is_on_host = always_on_host_.contains(id) || arrays_on_host_.contains(KeyOf(id));
      plan_[id].place = is_on_host ? Place::Cpu() : plan_.place;
    }
  }

  // All values of a variable are one array; the stack of a loop is an array without a variable.
  std::string KeyOf(ValueId array) const {
    const PlanValue& value = plan_[array];
    return value.storage == Storage::kScope ? value.name : StrCat("#", array.index());
  }

  // Returns the arrays that must be where the instruction runs.
  std::vector<std::string> ArraysOf(const Instruction& instruction) {
    std::vector<std::string> arrays;
    ForEachArray(instruction, [&](ValueId array, bool is_of_host) {
      if (is_of_host) {
        always_on_host_.insert(array);
      } else {
        arrays.push_back(KeyOf(array));
      }
    });
    return arrays;
  }

  // Calls use(array, is_of_host): whether it is on the host even if the instruction, a loop, runs
  // on the device, since iterations stack there what the host keeps.
  template <typename Use>
  void ForEachArray(const Instruction& instruction, const Use& use) const {
    const auto visit = [&](const std::vector<ValueId>& values, const std::vector<Place>& places) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i] || !plan_[values[i]].meta.is_array) continue;
        use(values[i], !instruction.place.is_cpu() && places[i].is_cpu());
      }
    };
    visit(instruction.inputs, InputPlaces(instruction));
    visit(instruction.outputs, OutputPlaces(instruction));
  }

  bool IsOnHost(ValueId array) const { return arrays_on_host_.contains(KeyOf(array)); }

  // ---- ops that make what only the host reads

  // Finds the ops whose results only the host reads, such as the counter of a loop when it begins:
  // there the device would have to be waited for. Their arguments are single elements.
  void FindOpsForHost() {
    const size_t count = plan_.instructions.size();
    is_for_host_.assign(count, false);
    std::map<ValueId, bool> only_host_reads;
    for (const ValueId fetch : plan_.fetches) only_host_reads[fetch] = false;
    for (size_t i = count; i-- > 0;) {
      const Instruction& instruction = plan_.instructions[i];
      is_for_host_[i] = MakesValuesForHost(instruction, only_host_reads);
      const bool is_on_device = !is_for_host_[i] && RunsOnDevice(instruction);
      const std::vector<Place> places = InputPlaces(instruction);
      for (size_t j = 0; j < places.size(); ++j) {
        const ValueId input = instruction.inputs[j];
        if (!input || !instruction.reads_data[j]) continue;
        const bool is_read_by_host =
            instruction.kind != InstructionKind::kCopy && (!is_on_device || places[j].is_cpu());
        const auto [read, is_first] = only_host_reads.emplace(input, is_read_by_host);
        read->second = read->second && is_read_by_host;
      }
    }
  }

  bool MakesValuesForHost(const Instruction& instruction,
                          const std::map<ValueId, bool>& only_host_reads) const {
    bool has_output = false;
    for (const ValueId output : instruction.outputs) {
      if (!output) continue;
      has_output = true;
      const auto found = only_host_reads.find(output);
      if (plan_[output].storage != Storage::kArena || found == only_host_reads.end() ||
          !found->second) {
        return false;
      }
    }
    return has_output && instruction.kind == InstructionKind::kOp &&
           CanMakeForHost(context_.registry, plan_, instruction);
  }

  // ---- instructions

  // The output of a copy to the arena stays where its input is.
  void PlaceCopy(Instruction* copy) {
    PlanValue& to = plan_[copy->outputs[0]];
    const Place from = plan_[copy->inputs[0]].place;
    if (to.storage == Storage::kArena) to.place = from;
    copy->place = to.place;
    NoteCurrent(copy->inputs[0]);
    NoteCurrent(copy->outputs[0]);
  }

  bool RunsOnDevice(const Instruction& instruction) const {
    return instruction.kind == InstructionKind::kLoop
               ? BodyRunsOnDevice(instruction)
               : OpRunsOnDevice(plan_, instruction, [this](ValueId id) { return IsOnHost(id); });
  }

  // `plan`: of the instruction.
  template <typename IsOnHost>
  bool OpRunsOnDevice(const Plan& plan, const Instruction& instruction,
                      const IsOnHost& is_on_host) const {
    if (instruction.kind != InstructionKind::kOp) return false;
    const OpDef& def = *instruction.def;
    if (def.is_on_host) return false;
    const auto is_of_host = [&](ValueId value) {
      if (!value) return false;
      if (plan[value].meta.is_array) return is_on_host(value);
      return plan[value].storage == Storage::kKernelOwned;
    };
    if (std::ranges::any_of(instruction.inputs, is_of_host)) return false;
    if (std::ranges::any_of(instruction.outputs, is_of_host)) return false;
    // Only the kernel knows the LoD, when it runs.
    const auto has_unknown_lod = [&](ValueId value) {
      return value && plan[value].meta.lod_level > 0 && plan[value].meta.lod == nullptr;
    };
    if (std::ranges::any_of(instruction.outputs, has_unknown_lod)) return false;
    return context_.registry.FindKernel(ContextOf(plan, instruction)) != nullptr;
  }

  bool BodyRunsOnDevice(const Instruction& instruction) const {
    const Loop& loop = *instruction.loop;
    const Plan& body = loop.body;
    if (body.place.is_cpu() || NeedsInputOnBoth(instruction)) return false;
    // The other half may have to run on the CPU, which has the stacks then.
    bool has_its_arrays = true;
    ForEachArray(instruction, [&](ValueId array, bool is_of_host) {
      has_its_arrays = has_its_arrays && (is_of_host || !IsOnHost(array));
    });
    if (!has_its_arrays) return false;
    const auto is_on_host = [&](ValueId array) {
      const auto found = std::ranges::find(loop.scope_values, array, &LoopScopeValue::value);
      if (found == loop.scope_values.end()) return true;  // the stack of a loop inside
      if (found->index < 0) return false;
      const auto index = static_cast<size_t>(found->index);
      return IsOnHost(found->is_output ? instruction.outputs[index] : instruction.inputs[index]);
    };
    const bool adds_on_device = std::ranges::all_of(loop.fetches, [&](const LoopFetch& fetch) {
      return fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0 ||
             DeviceSum::IsPossible(context_.registry, body[fetch.value].meta, body.place);
    });
    return adds_on_device && std::ranges::all_of(body.instructions, [&](const Instruction& inner) {
             return inner.kind == InstructionKind::kCopy || inner.place.is_cpu() ||
                    (OpRunsOnDevice(body, inner, is_on_host) && !HasStateOnHost(inner) &&
                     !HasSelectedRows(body, inner) &&
                     (!MayNoteFault(inner) || !inner.def->data_checked_by.empty()));
           });
  }

  // The loop itself writes row numbers, on the host.
  static bool HasSelectedRows(const Plan& body, const Instruction& instruction) {
    return std::ranges::any_of(instruction.outputs, [&](ValueId output) {
      return output && body[output].meta.is_selected_rows();
    });
  }

  static bool HasStateOnHost(const Instruction& instruction) {
    return std::ranges::any_of(OutputPlaces(instruction),
                               [](Place place) { return place.is_cpu(); });
  }

  static void MoveToCpu(Instruction* instruction) {
    if (instruction->loop->body.place.is_cpu()) return;
    auto moved = std::make_shared<Loop>(*instruction->loop);
    MoveBodyToCpu(&moved->body);
    instruction->loop = std::move(moved);
  }

  void MoveInputs(Instruction* instruction) {
    const std::vector<Place> places = InputPlaces(*instruction);
    for (size_t i = 0; i < places.size(); ++i) {
      ValueId& input = instruction->inputs[i];
      if (input) NoteCurrent(input);
      if (!input || !instruction->reads_data[i] || plan_[input].place == places[i]) continue;
      // An array isn't moved: it is where all that use it run.
      if (plan_[input].meta.is_array) continue;
      ValueId& moved = moved_[{input, places[i].is_cpu()}];
      if (!moved) moved = AppendCopy(*instruction, input, places[i]);
      input = moved;
    }
  }

  // Returns the copies to the scope that must follow.
  std::vector<Instruction> PlaceOutputs(Instruction* instruction) {
    std::vector<Instruction> after;
    std::vector<ValueId> written;
    const std::vector<Place> places = OutputPlaces(*instruction);
    for (size_t i = 0; i < places.size(); ++i) {
      const ValueId output = instruction->outputs[i];
      if (!output || plan_[output].meta.is_array) continue;
      if (plan_[output].storage == Storage::kArena) plan_[output].place = places[i];
      if (plan_[output].storage != Storage::kScope) continue;
      written.push_back(output);
      if (plan_[output].place == places[i]) continue;
      const ValueId aside = AddAside(output, places[i]);
      if (instruction->kind == InstructionKind::kLoop) {
        // Iterations see what earlier ones have written, and there may be none.
        plan_[aside].alias_of = HeldBefore(instruction, output, places[i]);
      }
      instruction->outputs[i] = aside;
      after.push_back(CopyOf(*instruction, aside, output));
      ++copies_;
    }
    std::ranges::for_each(written, [this](ValueId value) { NoteCurrent(value); });
    return after;
  }

  // Has the loop read a copy of its own of the variable that it writes, and returns that.
  ValueId HeldBefore(Instruction* loop, ValueId output, Place place) {
    ValueId& held = current_[plan_[output].name];
    if (!held) held = plan_.values.Add(plan_[output]);
    const ValueId shared = moved_[{held, place.is_cpu()}];
    const ValueId own = AppendCopy(*loop, held, place);
    for (ValueId& input : loop->inputs) {
      if (input == held || (shared && input == shared)) input = own;
    }
    return own;
  }

  // Notes that a variable of the scope holds this value now.
  void NoteCurrent(ValueId value) {
    if (plan_[value].storage == Storage::kScope) current_[plan_[value].name] = value;
  }

  ValueId AddAside(ValueId value, Place place) {
    PlanValue aside = plan_[value];
    aside.storage = Storage::kArena;
    aside.meta.persistable = false;
    aside.place = place;
    aside.alias_of = {};
    aside.is_exclusive = aside.is_checkpoint = false;
    return plan_.values.Add(std::move(aside));
  }

  ValueId AppendCopy(const Instruction& reader, ValueId from, Place place) {
    const ValueId to = AddAside(from, place);
    placed_.push_back(CopyOf(reader, from, to));
    ++copies_;
    return to;
  }

  Instruction CopyOf(const Instruction& needs, ValueId from, ValueId to) const {
    Instruction copy;
    copy.kind = InstructionKind::kCopy;
    copy.place = plan_.place;
    copy.op = needs.op;
    copy.def = needs.def;
    copy.block = needs.block;
    copy.position = needs.position;
    copy.inputs = {from};
    copy.outputs = {to};
    copy.reads_data = {true};
    return copy;
  }

  const PassContext& context_;
  Plan& plan_;
  std::set<std::string> arrays_on_host_;  // by KeyOf
  std::set<ValueId> always_on_host_;      // arrays that loops have there wherever they run
  std::vector<bool> is_for_host_;         // by instruction
  std::vector<Instruction> placed_;
  std::map<std::pair<ValueId, bool>, ValueId> moved_;  // by value, and whether to the CPU
  std::map<std::string, ValueId> current_;             // by the name of a variable of the scope
  int64_t on_host_ = 0;
  int64_t copies_ = 0;
};

}  // namespace

PassReport PlacementPass::Apply(const PassContext& context, Plan* plan) const {
  if (plan->place.is_cpu()) return {.pass = {}, .changes = 0, .summary = "a plan on the CPU"};
  if (context.is_body) return {.pass = {}, .changes = 0, .summary = "a body"};
  return Placement(context, plan).Run();
}

}  // namespace skiff
