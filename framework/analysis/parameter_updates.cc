#include "framework/analysis/parameter_updates.h"

#include <algorithm>
#include <cstdint>

#include "framework/analysis/flat_update.h"

namespace skiff {

bool IsParameterUpdate(const OpRegistry& registry, const Op& op) {
  const OpDef* def = registry.Find(op.type);
  return def != nullptr && def->update.has_value() && UpdatesParameters(op);
}

bool HasUpdates(const OpRegistry& registry, const Program& program) {
  for (size_t index = 0; index < program.block_count(); ++index) {
    const Block& block = *program.block(static_cast<int32_t>(index));
    if (std::ranges::any_of(block.ops(),
                            [&](const auto& op) { return IsParameterUpdate(registry, *op); })) {
      return true;
    }
  }
  return false;
}

}  // namespace skiff
