#include "framework/transpiler/dead_code_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"

namespace skiff {

PassReport DeadCodePass::Apply(const PassContext&, Plan* plan) const {
  // Backward, so that all readers of a value have been seen before its writer.
  ValueTable<bool> needed(plan->values.size(), false);
  for (ValueId fetch : plan->fetches) needed[fetch] = true;
  std::vector<Instruction> kept;
  for (auto it = plan->instructions.rbegin(); it != plan->instructions.rend(); ++it) {
    bool live = MustRunOnce(*it);
    for (ValueId output : it->outputs) {
      if (!output) continue;
      live = live || needed[output] || (*plan)[output].storage == Storage::kScope;
    }
    if (!live) continue;
    for (ValueId input : it->inputs) {
      if (input) needed[input] = true;
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
