#include "framework/analysis/model_summary.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/ir/op_role.h"
#include "framework/ir/used_names.h"
#include "framework/op/op_context.h"
#include "framework/op/var_meta.h"

namespace skiff {
namespace {

bool IsForward(const Op& op) {
  const bool is_training = (op.role() & (kRoleBackward | kRoleOptimize | kRoleLRSched)) != 0;
  return !is_training && op.type != "feed" && op.type != "fetch";
}

// Returns the names that forward ops write.
std::set<std::string> ComputedNames(const Program& program) {
  std::set<std::string> names;
  for (size_t k = 0; k < program.block_count(); ++k) {
    for (const auto& op : program.block(static_cast<int32_t>(k))->ops()) {
      if (!IsForward(*op)) continue;
      for (std::string& name : op->OutputNames()) names.insert(std::move(name));
    }
  }
  return names;
}

// Gives the feeds the dims that the options give.
void SetFeeds(const SummaryOptions& options, const std::set<std::string>& computed,
              Program* program) {
  const std::set<std::string> read = NamesRead(*program);
  const auto is_feed = [&](const Var& var) {
    return !var.persistable && read.contains(var.name) && !computed.contains(var.name);
  };
  for (const auto& [name, shape] : options.feeds) {
    Var* var = program->root()->FindLocalVar(name);
    SKIFF_ENFORCE(var != nullptr && is_feed(*var), kNotFound, "summary: \"", name,
                  "\" is no feed of the program");
    var->dims = shape.ToVector();
  }
  if (options.batch_size == 0) return;
  for (const auto& var : program->root()->vars()) {
    if (is_feed(*var) && !var->dims.empty() && var->dims[0] < 0) var->dims[0] = options.batch_size;
  }
}

// Returns the first output of the op, in the order of its definition, that isn't a statistic of the
// scope; nullptr if there is none.
const Var* OutputOf(const OpRegistry& registry, const Block& block, const Op& op) {
  const OpDef* def = registry.Find(op.type);
  for (const std::string& name : def == nullptr ? op.OutputNames() : OutputOrder(*def, op)) {
    const Var* var = block.FindVar(name);
    if (var != nullptr && !var->persistable) return var;
  }
  return nullptr;
}

std::string LayerOf(const Op& op, const Var* output) {
  const std::string& name = output == nullptr ? op.type : output->name;
  std::string scope = op.Attr<std::string>(kOpNamescopeAttr, "");
  if (scope.starts_with("/")) scope.erase(0, 1);
  return scope + name.substr(0, name.find(".tmp_"));
}

// Returns the FLOP of an op with a rule for them; nothing if a dim isn't known.
std::optional<double> FlopOf(const OpDef& def, const Block& block, const Op& op) {
  bool is_known = true;
  const auto metas = [&](const std::vector<std::string>& names) {
    std::vector<TensorMeta> found;
    for (const std::string& name : names) {
      const Var* var = name == kEmptyVarName ? nullptr : block.FindVar(name);
      found.push_back(var == nullptr ? TensorMeta() : MetaOf(*var));
      is_known = is_known && found.back().shape.is_known();
    }
    return found;
  };
  const OpContext context(op, def, metas(InputOrder(def, op)), metas(OutputOrder(def, op)));
  return is_known ? std::optional(def.flop(context)) : std::nullopt;
}

void Add(const std::optional<double>& flop, std::optional<double>* sum) {
  if (!flop || !*sum) {
    sum->reset();
  } else {
    **sum += *flop;
  }
}

// "61,706"
std::string WithCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string MegaflopText(const std::optional<double>& flop) {
  return flop ? FormatFixed(*flop / 1e6, 2) : "?";
}

// "conv2d, elementwise_add, relu", or the first two of many
std::string OpsText(const std::vector<std::string>& ops) {
  constexpr size_t kShown = 3;
  if (ops.size() <= kShown) return Join(ops, ", ");
  return StrCat(ops[0], ", ", ops[1], ", … ", ops.size(), " ops");
}

// The columns that a terminal shows: "…" is one, of three bytes.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Table(const std::vector<std::vector<std::string>>& lines, size_t left_columns) {
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], WidthOf(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - WidthOf(line[i]), ' ');
      row += i == 0 ? "" : "  ";
      row += i < left_columns ? line[i] + space : space + line[i];
    }
    text += row + "\n";
  }
  return text;
}

}  // namespace

ModelSummary Summarize(const Program& program, const SummaryOptions& options,
                       const OpRegistry& registry) {
  SKIFF_ENFORCE(options.batch_size >= 0, kInvalidArgument,
                "summary: batch_size = ", options.batch_size, ", expected no negative number");
  // Without gradients, and what is computed from them.
  const std::unique_ptr<Program> copy = program.CloneForTest();
  const std::set<std::string> computed = ComputedNames(*copy);
  SetFeeds(options, computed, copy.get());
  const bool infers = options.batch_size > 0 || !options.feeds.empty();
  Block* root = copy->root();
  ModelSummary summary;
  std::set<const Var*> counted;
  for (size_t i = 0; i < root->ops().size(); ++i) {
    Op* op = root->ops()[i].get();
    if (!IsForward(*op)) continue;
    if (infers) InferOp(registry, root, op);
    const Var* output = OutputOf(registry, *root, *op);
    const std::string name = LayerOf(*op, output);
    if (summary.layers.empty() || summary.layers.back().name != name) {
      summary.layers.push_back({.name = name});
    }
    LayerSummary& layer = summary.layers.back();
    layer.ops.push_back(op->type);
    if (output != nullptr) layer.output = MetaOf(*output).shape;
    for (const VarUse& use : UsesOf(registry, *root, i).vars) {
      if (!use.var->is_parameter || computed.contains(use.var->name)) continue;
      if (!counted.insert(use.var).second) continue;
      const int64_t elements = MetaOf(*use.var).shape.element_count();
      layer.parameters += elements;
      if (use.var->trainable && !use.var->stop_gradient) layer.trainable_parameters += elements;
      summary.parameter_bytes += elements * static_cast<int64_t>(SizeOf(use.var->dtype));
    }
    const OpDef* def = registry.Find(op->type);
    if (def != nullptr && def->flop) Add(FlopOf(*def, *root, *op), &layer.flop);
  }
  for (const LayerSummary& layer : summary.layers) {
    summary.parameters += layer.parameters;
    summary.trainable_parameters += layer.trainable_parameters;
    Add(layer.flop, &summary.flop);
  }
  return summary;
}

std::string ModelSummary::Text() const {
  std::vector<std::vector<std::string>> lines = {
      {"layer", "ops", "output", "parameters", "trainable", "MFLOP"}};
  for (const LayerSummary& layer : layers) {
    lines.push_back({layer.name, OpsText(layer.ops), TextOf(layer.output),
                     WithCommas(layer.parameters), WithCommas(layer.trainable_parameters),
                     MegaflopText(layer.flop)});
  }
  lines.push_back({"total", "", "", WithCommas(parameters), WithCommas(trainable_parameters),
                   MegaflopText(flop)});
  return StrCat(Table(lines, 3),
                "parameters: ", FormatFixed(static_cast<double>(parameter_bytes) / 1e6, 2),
                " MB; MFLOP: of matrix products and convolutions in one run\n");
}

}  // namespace skiff
