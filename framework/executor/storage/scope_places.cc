#include "framework/executor/storage/scope_places.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/host_slots.h"
#include "memory/allocator.h"
#include "memory/places.h"

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

// Moves tensors. If all variables of a buffer move to one place, they share one there: flat lists
// stay flat, and variables that are tied stay tied. Else each gets memory of its own, since nobody
// needs the rest of the buffer there.
class Moving {
 public:
  // `wanted`: where variables of the scope are to go, by name.
  Moving(const Scope& scope, const std::map<std::string, Place>& wanted) {
    for (const std::string& name : scope.Names()) {
      const Tensor* held = scope.Find(name);
      if (held == nullptr || !held->has_data()) continue;
      const auto place = wanted.find(name);
      places_[held->buffer().get()].insert(
          place == wanted.end() ? std::nullopt : std::optional(place->second.is_cpu()));
    }
  }

  Tensor Moved(const Tensor& held, Place to) {
    if (places_.at(held.buffer().get()).size() > 1) return CopyTo(held, to);
    std::shared_ptr<Buffer>& buffer = moved_[held.buffer().get()];
    if (buffer == nullptr) {
      const Buffer& from = *held.buffer();
      // First, so that nothing is noted if there is no memory.
      auto made = std::make_shared<Buffer>(AllocatorOf(to), from.bytes());
      if (from.bytes() > 0) {
        CopyBytes(made->data(), to, from.data(), from.place(), static_cast<size_t>(from.bytes()));
      }
      buffer = std::move(made);
    }
    Tensor moved(held.shape(), held.dtype(), buffer, held.offset_bytes(), held.layout());
    moved.ShareLoD(held.shared_lod());
    return moved;
  }

 private:
  static Tensor CopyTo(const Tensor& held, Place to) {
    Tensor copy(held.shape(), held.dtype(), to, held.layout());
    if (held.byte_count() > 0) {
      CopyBytes(copy.raw_data(), to, held.raw_data(), held.place(),
                static_cast<size_t>(held.byte_count()));
    }
    copy.ShareLoD(held.shared_lod());
    return copy;
  }

  // By buffer: whether its variables go to the CPU; nullopt: one stays.
  std::map<const Buffer*, std::set<std::optional<bool>>> places_;
  std::map<const Buffer*, std::shared_ptr<Buffer>> moved_;
};

}  // namespace

void MoveToPlaces(const OpRegistry& registry, const Program& program, Place place, Scope* scope) {
  const std::unordered_set<std::string> on_host = VarsOnHost(registry, program, place);
  std::map<std::string, Place> wanted;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) {
      if (!var->persistable) continue;
      const Tensor* held = scope->Find(var->name);
      const Place to = on_host.contains(var->name) ? Place::Cpu() : place;
      if (held == nullptr || !held->has_data() || held->place() == to) continue;
      wanted.emplace(var->name, to);
    }
  }
  if (wanted.empty()) return;
  Moving moving(*scope, wanted);
  // All are moved before the scope gives up the first buffer.
  std::vector<std::pair<std::string, Tensor>> moved;
  for (const auto& [name, to] : wanted) {
    try {
      moved.emplace_back(name, moving.Moved(scope->Get(name), to));
    } catch (const Error& error) {
      throw error.WithContext(StrCat("variable \"", name, "\": move to ", to));
    }
  }
  for (auto& [name, tensor] : moved) scope->Set(name, std::move(tensor));
}

}  // namespace skiff
