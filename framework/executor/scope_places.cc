#include "framework/executor/scope_places.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/host_slots.h"
#include "memory/allocator.h"
#include "memory/device.h"

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

// Moves tensors, and keeps together what shares a buffer: flat lists stay flat, and variables that
// are tied stay tied.
class Moving {
 public:
  Tensor Moved(const Tensor& held, Place to) {
    std::shared_ptr<Buffer>& buffer = moved_[{held.buffer().get(), to.is_cpu()}];
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
  // By the buffer, which the scope holds meanwhile, and whether to the CPU.
  std::map<std::pair<const Buffer*, bool>, std::shared_ptr<Buffer>> moved_;
};

}  // namespace

void MoveToPlaces(const OpRegistry& registry, const Program& program, Place place, Scope* scope) {
  const std::unordered_set<std::string> on_host = VarsOnHost(registry, program, place);
  Moving moving;
  // All are moved before the scope gives up the first buffer.
  std::vector<std::pair<std::string, Tensor>> moved;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) {
      if (!var->persistable) continue;
      const Tensor* held = scope->Find(var->name);
      const Place wanted = on_host.contains(var->name) ? Place::Cpu() : place;
      if (held == nullptr || !held->has_data() || held->place() == wanted) continue;
      try {
        moved.emplace_back(var->name, moving.Moved(*held, wanted));
      } catch (const Error& error) {
        throw error.WithContext(StrCat("variable \"", var->name, "\": move to ", wanted));
      }
    }
  }
  for (auto& [name, tensor] : moved) scope->Set(name, std::move(tensor));
}

}  // namespace skiff
