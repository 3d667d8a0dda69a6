#include "framework/analysis/body_places.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "framework/analysis/argument_places.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

class BodyPlaces {
 public:
  BodyPlaces(const OpRegistry& registry, Plan* body)
      : registry_(registry), body_(*body), runs_on_host_(body->instructions.size(), false) {}

  void Find(ValueId condition, std::span<const std::pair<ValueId, ValueId>> carried) {
    if (condition) Keep(condition);
    for (size_t i = 0; i < body_.instructions.size(); ++i) {
      const Instruction& instruction = body_.instructions[i];
      if (IsLoopBoundary(instruction)) continue;
      const std::vector<Place> places = InputPlaces(instruction);
      for (size_t j = 0; j < places.size(); ++j) {
        if (places[j].is_cpu() && instruction.reads_data[j]) Keep(instruction.inputs[j]);
      }
      if (instruction.def->is_on_host) RunOnHost(i);
    }
    while (has_changed_) {
      has_changed_ = false;
      for (size_t i = 0; i < body_.instructions.size(); ++i) {
        if (!IsLoopBoundary(body_.instructions[i]) && WritesKept(i)) RunOnHost(i);
      }
      for (const auto& [from, to] : carried) {
        if (kept_.contains(from)) Keep(to);
        if (kept_.contains(to)) Keep(from);
      }
    }
  }

  bool ArePossible() const {
    for (size_t i = 0; i < body_.instructions.size(); ++i) {
      const Instruction& instruction = body_.instructions[i];
      if (IsLoopBoundary(instruction)) continue;
      if (runs_on_host_[i] ? !CanRunOnHost(instruction) : !CanRunOnDevice(instruction)) {
        return false;
      }
    }
    // A storage is in one place.
    for (const ValueId id : body_.ids()) {
      const bool is_kept = kept_.contains(id);
      if (is_kept != kept_.contains(body_.StorageOf(id))) return false;
      if (is_kept && body_[id].storage == Storage::kScope) return false;
    }
    return true;
  }

  void Set() {
    for (const ValueId value : kept_) body_[value].place = Place::Cpu();
    for (size_t i = 0; i < body_.instructions.size(); ++i) {
      if (runs_on_host_[i]) body_.instructions[i].place = Place::Cpu();
    }
  }

 private:
  void Keep(ValueId value) {
    if (!value || body_[value].meta.is_array) return;
    has_changed_ |= kept_.insert(value).second;
  }

  bool WritesKept(size_t i) const {
    return std::ranges::any_of(body_.instructions[i].outputs,
                               [this](ValueId output) { return kept_.contains(output); });
  }

  void RunOnHost(size_t i) {
    has_changed_ |= !runs_on_host_[i];
    runs_on_host_[i] = true;
    const Instruction& instruction = body_.instructions[i];
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (instruction.reads_data[j]) Keep(instruction.inputs[j]);
    }
    for (const ValueId output : instruction.outputs) Keep(output);
  }

  bool CanRunOnHost(const Instruction& instruction) const {
    return (instruction.def->is_on_host && instruction.kind == InstructionKind::kOp) ||
           CanMakeForHost(registry_, body_, instruction);
  }

  bool CanRunOnDevice(const Instruction& instruction) const {
    const std::vector<Place> places = InputPlaces(instruction);
    for (size_t j = 0; j < places.size(); ++j) {
      const bool is_elsewhere = kept_.contains(instruction.inputs[j]) && !places[j].is_cpu();
      if (is_elsewhere && instruction.reads_data[j]) return false;
    }
    return true;
  }

  const OpRegistry& registry_;
  Plan& body_;
  std::set<ValueId> kept_;  // on the host
  std::vector<bool> runs_on_host_;
  bool has_changed_ = true;
};

}  // namespace

bool IsOneElement(const TensorMeta& meta) {
  return !meta.is_array && meta.layout.is_plain() && meta.shape.element_count() == 1;
}

bool CanMakeForHost(const OpRegistry& registry, const Plan& plan, const Instruction& instruction) {
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const ValueId input = instruction.inputs[i];
    if (input && instruction.reads_data[i] && !IsOneElement(plan[input].meta)) return false;
  }
  const auto is_large = [&](ValueId output) { return output && !IsOneElement(plan[output].meta); };
  if (std::ranges::any_of(instruction.outputs, is_large)) return false;
  if (instruction.kind == InstructionKind::kCopy) return true;
  if (instruction.kind != InstructionKind::kOp || instruction.def->random) return false;
  Instruction on_host = instruction;
  on_host.place = Place::Cpu();
  return registry.FindKernel(ContextOf(plan, on_host)) != nullptr;
}

void MoveBodyToCpu(Plan* body) {
  body->place = Place::Cpu();
  for (const ValueId id : body->ids()) (*body)[id].place = Place::Cpu();
  for (Instruction& instruction : body->instructions) instruction.place = Place::Cpu();
}

bool PlaceBody(const OpRegistry& registry, ValueId condition,
               std::span<const std::pair<ValueId, ValueId>> carried, Plan* body) {
  BodyPlaces places(registry, body);
  places.Find(condition, carried);
  if (!places.ArePossible()) return false;
  places.Set();
  return true;
}

}  // namespace skiff
