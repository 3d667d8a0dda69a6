#include "framework/executor/scope_places.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "framework/op/host_slots.h"

namespace skiff {
namespace {

// Returns the variables that an op keeps on the CPU, though the program runs on a device.
std::unordered_set<std::string> VarsOnHost(const OpRegistry& registry, const Program& program,
                                           Place place) {
  std::unordered_set<std::string> names;
  if (place.is_cpu()) return names;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& op : program.block(static_cast<int32_t>(i))->ops()) {
      const OpDef* def = registry.Find(op->type);
      if (def == nullptr) continue;
      for (const SlotArguments& slot : op->outputs) {
        if (!PlaceOfSlot(*def, *op, slot.slot, place).is_cpu()) continue;
        names.insert(slot.arguments.begin(), slot.arguments.end());
      }
    }
  }
  return names;
}

}  // namespace

void MoveToPlaces(const OpRegistry& registry, const Program& program, Place place, Scope* scope) {
  const std::unordered_set<std::string> on_host = VarsOnHost(registry, program, place);
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) {
      if (!var->persistable) continue;
      const Tensor* held = scope->Find(var->name);
      const Place wanted = on_host.contains(var->name) ? Place::Cpu() : place;
      if (held == nullptr || !held->has_data() || held->place() == wanted) continue;
      Tensor moved(held->shape(), held->dtype(), wanted, held->layout());
      CopyTensor(*held, &moved);
      moved.ShareLoD(held->shared_lod());
      scope->Set(var->name, std::move(moved));
    }
  }
}

}  // namespace skiff
