#include "framework/executor/clone_scope.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/analysis/deciding_variables.h"
#include "framework/analysis/running_state.h"
#include "framework/base/error.h"

namespace skiff {

void CheckWritesNoVariable(const OpRegistry& registry, const Program& program) {
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = *program.block(static_cast<int32_t>(i));
    for (const auto& op : block.ops()) {
      const OpDef* def = registry.Find(op->type);
      const std::vector<std::string> kept =
          def == nullptr ? std::vector<std::string>() : KeptRunningState(*def, *op);
      for (const std::string& name : op->OutputNames()) {
        const Var* var = block.FindVar(name);
        const bool is_of_scope =
            var != nullptr && var->persistable && var->kind != VarKind::kFetchList;
        SKIFF_ENFORCE(!is_of_scope || std::ranges::count(kept, name) > 0, kFailedPrecondition,
                      "Clone: op \"", op->type, "\" writes \"", name,
                      "\" in the scope, which clones would share: expected a program that changes "
                      "no variable, such as one for inference");
      }
    }
  }
}

std::unique_ptr<Scope> ScopeOfClone(const OpRegistry& registry, const Scope& scope,
                                    const Program& program) {
  const DecidingVariables deciding(registry, program);
  auto own = std::make_unique<Scope>();
  const auto take = [&](const std::string& name) {
    const Tensor* tensor = scope.Find(name);
    if (tensor == nullptr || !tensor->has_data() || own->Find(name) != nullptr) return;
    own->Set(name, deciding.Contains(name, tensor->dtype()) ? CopyToCpu(*tensor) : *tensor);
  };
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) take(var->name);
  }
  take(kStepCounterName);
  return own;
}

}  // namespace skiff
