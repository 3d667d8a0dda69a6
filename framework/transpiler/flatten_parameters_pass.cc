#include "framework/transpiler/flatten_parameters_pass.h"

#include <string>
#include <vector>

#include "framework/analysis/flat_update.h"
#include "framework/base/error.h"
#include "framework/transpiler/name_list.h"

namespace skiff {

PassReport FlattenParametersPass::Apply(const ProgramPassContext& context, Program* program) const {
  int64_t parameters = 0;
  int64_t updates = 0;
  int64_t sums = 0;
  std::vector<std::string> alone;
  for (const auto& op : program->root()->ops()) {
    const OpDef* def = context.registry.Find(op->type);
    if (!TakesFlatLists(def)) continue;
    const std::vector<std::string>& names = op->Input(def->update->lists.front());
    const bool is_update = UpdatesParameters(*op);
    if (names.size() < 2) {
      if (is_update) alone.insert(alone.end(), names.begin(), names.end());
      continue;
    }
    // The attribute is all that this pass does. The executor moves the tensors in the scope
    // (FlatScope), and memory_reuse makes the gradients contiguous in the arena.
    op->SetAttr(kIsFlatAttr, true);
    if (is_update) parameters += static_cast<int64_t>(names.size());
    ++(is_update ? updates : sums);
  }
  std::string summary = StrCat(parameters, " parameters stored flat, in ", updates, " updates");
  if (sums > 0) summary += StrCat("; sums in ", sums, " ops");
  if (!alone.empty()) summary += StrCat("; alone in their updates: ", FewNames(alone));
  return {.pass = {}, .changes = parameters, .summary = std::move(summary)};
}

}  // namespace skiff
