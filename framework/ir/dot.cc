// PrintDot.
#include <unordered_map>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/ir/text_escape.h"

namespace skiff {
namespace {

constexpr std::string_view kOpStyle = "shape=box, style=filled, fillcolor=\"#e8e8e8\"";
constexpr std::string_view kParameterStyle = "shape=ellipse, style=filled, fillcolor=\"#ffd27f\"";
constexpr std::string_view kVarStyle = "shape=ellipse";
constexpr std::string_view kUndeclaredStyle = "shape=ellipse, style=dashed";

// Returns a string for a quoted label, which shows the escapes of the text format. DOT has its own
// escapes (\n, \N, \G, ...), so each backslash is doubled.
std::string LabelText(std::string_view text) {
  const std::string quoted = Quote(text);
  std::string label;
  for (char c : std::string_view(quoted).substr(1, quoted.size() - 2)) {
    // Quote has put a backslash before each quote. Doubling it would end its effect, so the quote
    // needs another one.
    label += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : std::string(1, c);
  }
  return label;
}

class DotPrinter {
 public:
  explicit DotPrinter(const Program& program) : program_(program) {}

  std::string Print() {
    out_ = "digraph program {\n  node [fontsize=10];\n  edge [fontsize=8];\n";
    PrintBlocks();
    for (size_t i = 0; i < program_.block_count(); ++i) {
      PrintEdges(*program_.block(static_cast<int32_t>(i)));
    }
    // Edges come last, outside of all clusters: an edge inside a cluster would draw its nodes into
    // that.
    return std::move(out_) + edges_ + "}\n";
  }

 private:
  // Clusters nest as blocks do. The stack is explicit, since a program may nest deeper than the
  // call stack.
  void PrintBlocks() {
    std::vector<std::vector<int32_t>> children(program_.block_count());
    std::vector<int32_t> pending;
    for (auto i = static_cast<int32_t>(program_.block_count()); i-- > 0;) {
      const int32_t parent = program_.block(i)->parent_index();
      (parent < 0 ? pending : children[static_cast<size_t>(parent)]).push_back(i);
    }
    while (!pending.empty()) {
      const int32_t index = pending.back();
      pending.pop_back();
      if (index == kCloseCluster) {
        out_ += "  }\n";
        continue;
      }
      if (index != 0) {
        out_ += StrCat("  subgraph cluster_", index, " {\n  label=\"block ", index, "\";\n");
        pending.push_back(kCloseCluster);
      }
      PrintNodes(*program_.block(index));
      const std::vector<int32_t>& inner = children[static_cast<size_t>(index)];
      pending.insert(pending.end(), inner.begin(), inner.end());
    }
  }

  void PrintNodes(const Block& block) {
    // Graphviz doesn't draw an empty cluster, and the edge of its op would have no target.
    if (block.index() != 0) out_ += StrCat("  ", EntryName(block.index()), " [shape=point];\n");
    for (const auto& var : block.vars()) PrintVar(block, *var);
    for (size_t i = 0; i < block.ops().size(); ++i) {
      PrintNode(OpName(block, i), LabelText(block.ops()[i]->type), kOpStyle);
    }
  }

  void PrintVar(const Block& block, const Var& var) {
    const std::string name = StrCat("var_", block.index(), "_", var_names_.size());
    var_names_.emplace(&var, name);
    std::string label = LabelText(var.name) + "\\n";
    if (var.kind != VarKind::kLoDTensor) label += StrCat(VarKindName(var.kind), " ");
    label += StrCat(DTypeName(var.dtype), " [", Join(var.dims, ", "), "]");
    PrintNode(name, label, var.is_parameter ? kParameterStyle : kVarStyle);
  }

  void PrintNode(const std::string& name, const std::string& label, std::string_view style) {
    out_ += StrCat("  ", name, " [label=\"", label, "\", ", style, "];\n");
  }

  void PrintEdges(const Block& block) {
    for (size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i];
      const std::string name = OpName(block, i);
      PrintSlots(block, op.inputs, [&](const std::string& var) { return var + " -> " + name; });
      PrintSlots(block, op.outputs, [&](const std::string& var) { return name + " -> " + var; });
      for (int32_t index : op.SubBlocks()) PrintSubBlockEdge(name, index);
    }
  }

  template <typename Edge>
  void PrintSlots(const Block& block, const Slots& slots, const Edge& edge) {
    for (const SlotArguments& entry : slots) {
      for (const std::string& argument : entry.arguments) {
        if (argument == kEmptyVarName) continue;
        edges_ += StrCat("  ", edge(NodeOf(block, argument)), " [label=\"", LabelText(entry.slot),
                         "\"];\n");
      }
    }
  }

  void PrintSubBlockEdge(const std::string& op, int32_t index) {
    const bool exists = index > 0 && static_cast<size_t>(index) < program_.block_count();
    if (!exists) return;
    edges_ += StrCat("  ", op, " -> ", EntryName(index), " [style=dashed];\n");
  }

  // Damaged programs should be drawn, too, so a name without a variable gets a dashed node.
  const std::string& NodeOf(const Block& block, const std::string& name) {
    if (const Var* var = block.FindVar(name)) return var_names_.at(var);
    const auto [found, added] =
        undeclared_.emplace(name, StrCat("undeclared_", undeclared_.size()));
    if (added) PrintNode(found->second, LabelText(name), kUndeclaredStyle);
    return found->second;
  }

  static std::string OpName(const Block& block, size_t position) {
    return StrCat("op_", block.index(), "_", position);
  }

  static std::string EntryName(int32_t block) { return StrCat("block_", block); }

  static constexpr int32_t kCloseCluster = -1;

  const Program& program_;
  std::string out_;
  std::string edges_;
  std::unordered_map<const Var*, std::string> var_names_;
  std::unordered_map<std::string, std::string> undeclared_;
};

}  // namespace

std::string PrintDot(const Program& program) { return DotPrinter(program).Print(); }

}  // namespace skiff
