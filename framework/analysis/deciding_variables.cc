#include "framework/analysis/deciding_variables.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"

namespace skiff {
namespace {

// From a name to those whose memory it may have.
using Views = std::unordered_multimap<std::string, std::string>;

void AddViews(const std::vector<std::string>& views, const std::vector<std::string>& of,
              Views* all) {
  for (size_t i = 0; i < std::min(views.size(), of.size()); ++i) all->emplace(views[i], of[i]);
}

}  // namespace

// By name, though a name may mean several variables: then one too many is copied.
DecidingVariables::DecidingVariables(const OpRegistry& registry, const Program& program) {
  Views views;
  std::vector<std::string> found;
  const auto add_op = [&](const Op& op, const OpDef& def) {
    for (const SlotDef& slot : def.inputs) {
      if (!slot.checks_data && (!def.data_dependent_shape || slot.shape_only)) continue;
      const std::vector<std::string>& names = op.Input(slot.name);
      found.insert(found.end(), names.begin(), names.end());
    }
    for (const auto& [input, output] : def.views) {
      AddViews(op.Output(output), op.Input(input), &views);
    }
    // A body sees variables outside by their names, or copies of them, except for the gradients
    // that a gradient op hands to it.
    if (def.block == nullptr || !def.block->is_gradient) return;
    const std::string results = SlotsOf(def.block->kind).results;
    AddViews(SetBeforeIteration(op, *def.block), op.Input(results + kGradSuffix), &views);
  };
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& op : program.block(static_cast<int32_t>(i))->ops()) {
      const OpDef* def = registry.Find(op->type);
      if (def != nullptr) add_op(*op, *def);
    }
  }
  while (!found.empty()) {
    const std::string name = found.back();
    found.pop_back();
    if (name == kEmptyVarName || !read_by_data_.insert(name).second) continue;
    const auto [begin, end] = views.equal_range(name);
    for (auto view = begin; view != end; ++view) found.push_back(view->second);
  }
}

bool DecidingVariables::Contains(const std::string& name, DType dtype) const {
  return !IsFloat(dtype) || read_by_data_.contains(name);
}

}  // namespace skiff
