#include "framework/transpiler/placement_pass.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/argument_places.h"
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
    std::vector<Instruction> instructions = std::exchange(plan_.instructions, {});
    for (Instruction& instruction : instructions) Add(std::move(instruction));
    plan_.instructions = std::move(placed_);
    return {.pass = {},
            .changes = on_host_ + copies_,
            .summary = StrCat(on_host_, " instructions on the CPU, ", copies_, " copies")};
  }

 private:
  void Add(Instruction instruction) {
    if (instruction.kind == InstructionKind::kCopy) {
      PlaceCopy(&instruction);
      placed_.push_back(std::move(instruction));
      return;
    }
    const bool runs_on_device = instruction.kind == InstructionKind::kLoop
                                    ? BodyRunsOnDevice(*instruction.loop)
                                    : RunsOnDevice(plan_, instruction);
    instruction.place = runs_on_device ? plan_.place : Place::Cpu();
    if (!runs_on_device && instruction.kind == InstructionKind::kLoop) MoveBodyToCpu(&instruction);
    if (instruction.place.is_cpu()) ++on_host_;
    MoveInputs(&instruction);
    std::vector<Instruction> after = PlaceOutputs(&instruction);
    placed_.push_back(std::move(instruction));
    std::ranges::move(after, std::back_inserter(placed_));
  }

  // The output of a copy to the arena stays where its input is.
  void PlaceCopy(Instruction* copy) {
    PlanValue& to = plan_[copy->outputs[0]];
    const Place from = plan_[copy->inputs[0]].place;
    if (to.storage == Storage::kArena) to.place = from;
    copy->place = to.place;
    NoteCurrent(copy->inputs[0]);
    NoteCurrent(copy->outputs[0]);
  }

  // `plan`: of the instruction.
  bool RunsOnDevice(const Plan& plan, const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp) return false;
    const OpDef& def = *instruction.def;
    if (def.is_on_host || instruction.sets_rows) return false;
    const auto is_of_host = [&](ValueId value) {
      return value && (plan[value].meta.is_array || plan[value].storage == Storage::kMade);
    };
    if (std::ranges::any_of(instruction.inputs, is_of_host)) return false;
    if (std::ranges::any_of(instruction.outputs, is_of_host)) return false;
    // Only the kernel knows the LoD.
    const auto has_unknown_lod = [&](ValueId value) {
      return value && plan[value].meta.lod_level > 0 && plan[value].meta.lod == nullptr;
    };
    if (std::ranges::any_of(instruction.outputs, has_unknown_lod)) return false;
    return context_.registry.FindKernel(ContextOf(plan, instruction)) != nullptr;
  }

  bool BodyRunsOnDevice(const Loop& loop) const {
    const Plan& body = loop.body;
    if (body.place.is_cpu() || loop.iterations < 0 || loop.count_output >= 0) return false;
    const auto is_ragged = [&](const LoopFeed& feed) {
      return body[feed.value].meta.lod != nullptr;
    };
    if (std::ranges::any_of(loop.feeds, is_ragged)) return false;
    const auto is_array = [&](const LoopScopeValue& variable) {
      return body[variable.value].meta.is_array;
    };
    if (std::ranges::any_of(loop.scope_values, is_array)) return false;
    const bool adds_on_device = std::ranges::all_of(loop.fetches, [&](const LoopFetch& fetch) {
      return fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0 ||
             DeviceSum::IsPossible(context_.registry, body[fetch.value].meta, body.place);
    });
    return adds_on_device && std::ranges::all_of(body.instructions, [&](const Instruction& inner) {
             return inner.kind == InstructionKind::kCopy ||
                    (RunsOnDevice(body, inner) && !ChecksData(inner) && !HasStateOnHost(inner));
           });
  }

  static bool HasStateOnHost(const Instruction& instruction) {
    const auto is_cpu = [](Place place) { return place.is_cpu(); };
    return std::ranges::any_of(InputPlaces(instruction), is_cpu) ||
           std::ranges::any_of(OutputPlaces(instruction), is_cpu);
  }

  static void MoveBodyToCpu(Instruction* instruction) {
    if (instruction->loop->body.place.is_cpu()) return;
    auto moved = std::make_shared<Loop>(*instruction->loop);
    moved->body.place = Place::Cpu();
    for (const ValueId id : moved->body.ids()) moved->body[id].place = Place::Cpu();
    for (Instruction& inner : moved->body.instructions) inner.place = Place::Cpu();
    instruction->loop = std::move(moved);
  }

  void MoveInputs(Instruction* instruction) {
    const std::vector<Place> places = InputPlaces(*instruction);
    for (size_t i = 0; i < places.size(); ++i) {
      ValueId& input = instruction->inputs[i];
      if (input) NoteCurrent(input);
      if (!input || !instruction->reads_data[i] || plan_[input].place == places[i]) continue;
      // An array isn't moved: whatever uses it is on the CPU.
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
    aside.is_alone = aside.is_checkpoint = false;
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
