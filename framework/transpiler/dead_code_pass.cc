#include "framework/transpiler/dead_code_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"

namespace skiff {

PassReport DeadCodePass::Apply(const OpRegistry&, Plan* plan) const {
  std::vector<bool> needed(plan->values.size(), false);
  for (int32_t fetch : plan->fetches) needed[static_cast<size_t>(fetch)] = true;
  std::vector<Instruction> kept;
  for (auto it = plan->instructions.rbegin(); it != plan->instructions.rend(); ++it) {
    bool live = MustStay(*it);
    for (int32_t output : it->outputs) {
      if (output < 0) continue;
      const size_t value = static_cast<size_t>(output);
      live = live || needed[value] || plan->values[value].storage == Storage::kScope;
    }
    if (!live) continue;
    for (int32_t input : it->inputs) {
      if (input >= 0) needed[static_cast<size_t>(input)] = true;
    }
    kept.push_back(std::move(*it));
  }
  std::ranges::reverse(kept);
  const int64_t dropped =
      static_cast<int64_t>(plan->instructions.size()) - static_cast<int64_t>(kept.size());
  plan->instructions = std::move(kept);
  return {.pass = {}, .changes = dropped, .summary = StrCat(dropped, " instructions dropped")};
}

}  // namespace skiff
