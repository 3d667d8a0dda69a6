#include "framework/op/host_slots.h"

#include <algorithm>

namespace skiff {

Place PlaceOfSlot(const OpDef& def, const Op& op, std::string_view slot, Place place) {
  const SlotDef* input = def.FindInput(slot);
  if (input != nullptr && (input->on_host || !input->attribute.empty())) return Place::Cpu();
  const AttrDef* attr = def.FindAttr(kOnHostAttr);
  if (attr == nullptr || !def.update.has_value()) return place;
  const Attribute* value = EffectiveAttr(op, *attr);
  const bool* on_host = value == nullptr ? nullptr : std::get_if<bool>(value);
  if (on_host == nullptr || !*on_host) return place;
  // Only the states: what the op merely reads (parameters) or writes anew is where it runs.
  const bool is_kept = std::ranges::any_of(
      def.in_place, [&](const auto& pair) { return pair.first == slot || pair.second == slot; });
  return is_kept ? Place::Cpu() : place;
}

bool MayNoteFault(const SlotDef& slot) { return slot.checks_data && !slot.on_host && !slot.array; }

}  // namespace skiff
