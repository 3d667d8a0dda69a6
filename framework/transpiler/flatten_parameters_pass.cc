#include "framework/transpiler/flatten_parameters_pass.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {

PassReport FlattenParametersPass::Apply(const OpRegistry& registry, Program* program) const {
  int64_t parameters = 0;
  int64_t ops = 0;
  for (const auto& op : program->root()->ops()) {
    const OpDef* def = registry.Find(op->type);
    if (def == nullptr || !def->update.has_value() || def->FindAttr(kIsFlatAttr) == nullptr) {
      continue;
    }
    const size_t count = op->Input(def->update->lists.front()).size();
    if (count < 2) continue;
    op->SetAttr(kIsFlatAttr, true);
    parameters += static_cast<int64_t>(count);
    ++ops;
  }
  return {.pass = {},
          .changes = parameters,
          .summary = StrCat(parameters, " parameters lie flat, in ", ops, " updates")};
}

}  // namespace skiff
