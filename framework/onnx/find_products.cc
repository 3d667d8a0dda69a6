// What exporters write around products because PyTorch computes these on tensors of rank 2 or 3.
#include <algorithm>
#include <limits>
#include <utility>

#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/compositions_found.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Dims = std::vector<int64_t>;

// The slot by which a reshape is told its shape in a run, "" if `shape` is an attribute.
std::string ShapeSlot(const Op& reshape) {
  if (!reshape.Input("Shape").empty()) return "Shape";
  return reshape.Input("ShapeTensor").empty() ? "" : "ShapeTensor";
}

// ---- joined rows

// y = reshape2(matmul_v2(reshape2(x), w) + b): all but the last dims are one in between.
struct JoinedRows {
  Op* split = nullptr;      // the last reshape
  const Op* add = nullptr;  // nullptr: no bias
  const Op* product = nullptr;
  const Op* join = nullptr;  // the first reshape
  int64_t columns = 0;       // of x
};

std::optional<JoinedRows> JoinedRowsAt(const CompositionGraph& graph, Op* split) {
  JoinedRows found{.split = split};
  const std::string& sum = split->Input("X")[0];
  const std::string& out = split->Output("Out")[0];
  std::string product = sum;
  found.add = graph.Writer(sum, "elementwise_add");
  if (found.add != nullptr) {
    product = found.add->Input("X")[0];
    const bool is_bias = graph.RankOf(found.add->Input("Y")[0]) == 1 &&
                         found.add->Attr<int32_t>("axis", -1) == -1 &&
                         graph.OnlyReader(product) != nullptr;
    if (!is_bias) return std::nullopt;
  }
  found.product = graph.Writer(product, "matmul_v2");
  const bool is_product = found.product != nullptr && graph.OnlyReader(sum) == split &&
                          !found.product->Attr<bool>("trans_x", false) &&
                          graph.RankOf(found.product->Input("Y")[0]) == 2 &&
                          graph.RankOf(product) == 2 && graph.RankOf(out) > 2;
  if (!is_product) return std::nullopt;
  found.join = graph.Writer(found.product->Input("X")[0], "reshape2");
  Dims weight = graph.VarOf(found.product->Input("Y")[0]).dims;
  if (found.product->Attr<bool>("trans_y", false)) std::swap(weight[0], weight[1]);
  found.columns = weight[0];
  const bool keeps_columns =
      weight[0] > 0 && weight[1] > 0 && graph.VarOf(out).dims.back() == weight[1];
  return found.join != nullptr && keeps_columns ? std::optional(found) : std::nullopt;
}

// Returns x with the dims that `split` makes, except the last dim, which is `columns`.
Variable SplitAlike(const CompositionGraph& graph, const Op& split, const Variable& x,
                    int64_t columns) {
  const std::string slot = ShapeSlot(split);
  const auto rank = static_cast<int64_t>(graph.RankOf(split.Output("Out")[0]));
  if (slot.empty()) {
    Dims dims = IntsOf(split, "shape");
    dims.back() = columns;
    return layers::Reshape(x, dims);
  }
  const Variable given = graph.VariableOf(split.Input(slot)[0]);
  const Variable leading = layers::Slice(given, {.axes = {0}, .starts = {0}, .ends = {rank - 1}});
  const Variable last = layers::Cast(layers::AssignValue({1}, Dims{columns}), given.dtype());
  Variable made = ReshapedToParts(x, {leading, last});
  made.var().dims = graph.VarOf(split.Output("Out")[0]).dims;
  made.var().dims.back() = columns;
  return made;
}

// Whether the dims that the reshape asks for mean the same for an input with other columns.
bool MeansRows(const Op& split) {
  if (split.Input("ShapeTensor").size() > 1) return false;
  const Dims dims = IntsOf(split, "shape");
  return !ShapeSlot(split).empty() ||
         (dims.size() > 2 && std::ranges::count(dims.begin() + 1, dims.end(), 0) == 0);
}

// ---- transposes

// A dim that a reshape is told: a number, or that of a variable; else unknown.
struct WantedDim {
  int64_t number = -1;
  std::string variable = {};
  int64_t axis = 0;
};

// Returns the whole numbers of a vector, as far as they follow from constants and dims.
std::vector<WantedDim> DimsIn(const CompositionGraph& graph, const std::string& name) {
  std::vector<WantedDim> dims;
  const Op* op = graph.Writer(name);
  if (op == nullptr) return dims;
  if (const auto numbers = graph.ConstantsOf(name)) {
    for (const double number : *numbers) dims.push_back({static_cast<int64_t>(number)});
  } else if (op->type == "shape") {
    const std::string& x = op->Input("Input")[0];
    const Dims& known = graph.VarOf(x).dims;
    for (size_t i = 0; i < known.size(); ++i) {
      dims.push_back({known[i], x, static_cast<int64_t>(i)});
    }
  } else if (op->type == "cast") {
    return DimsIn(graph, op->Input("X")[0]);
  } else if (op->type == "concat") {
    for (const std::string& part : op->Input("X")) {
      const std::vector<WantedDim> more = DimsIn(graph, part);
      if (more.empty()) return {};
      dims.insert(dims.end(), more.begin(), more.end());
    }
  } else if (op->type == "slice") {
    const bool is_known = op->Input("StartsTensor").empty() && op->Input("EndsTensor").empty() &&
                          op->Input("StartsTensorList").empty() &&
                          op->Input("EndsTensorList").empty() &&
                          IntsOf(*op, "decrease_axis").empty() && IntsOf(*op, "starts").size() == 1;
    if (!is_known) return {};
    const std::vector<WantedDim> all = DimsIn(graph, op->Input("Input")[0]);
    const auto count = static_cast<int64_t>(all.size());
    const auto [begin, end] = SlicedPart(IntsOf(*op, "starts")[0], IntsOf(*op, "ends")[0], count);
    dims.assign(all.begin() + begin, all.begin() + end);
  }
  return dims;
}

// Whether a reshape asks for these dims of x, each of which may be unknown; one of them, or
// `free_axis`, may follow from the others.
bool AsksFor(const CompositionGraph& graph, const Op& reshape, const std::string& x,
             const Dims& axes, int64_t free_axis) {
  const std::string slot = ShapeSlot(reshape);
  if (!slot.empty() && reshape.Input(slot).size() != 1) return false;
  std::vector<WantedDim> wanted;
  if (slot.empty()) {
    for (const int64_t dim : IntsOf(reshape, "shape")) wanted.push_back({dim});
  } else {
    wanted = DimsIn(graph, reshape.Input(slot)[0]);
  }
  if (wanted.size() != axes.size()) return false;
  int64_t following = free_axis >= 0 ? 1 : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (static_cast<int64_t>(i) == free_axis) continue;
    const WantedDim& dim = wanted[i];
    const int64_t known = graph.VarOf(x).dims[static_cast<size_t>(axes[i])];
    const bool is_same =
        (dim.number > 0 && dim.number == known) || (dim.variable == x && dim.axis == axes[i]);
    if (!is_same && (dim.number != -1 || !dim.variable.empty() || ++following > 1)) return false;
  }
  return true;
}

}  // namespace

void FindJoinedRows(CompositionGraph* graph) {
  for (Op* op : graph->OpsOf({"reshape2"})) {
    const auto found = MeansRows(*op) ? JoinedRowsAt(*graph, op) : std::nullopt;
    if (!found) continue;
    const Op& product = *found->product;
    graph->Replace(op, "Out", [&] {
      const Variable joined = graph->VariableOf(product.Input("X")[0]);
      const Variable x = SplitAlike(*graph, *op, joined, found->columns);
      const Variable y = layers::MatMul(x, graph->VariableOf(product.Input("Y")[0]),
                                        {.transpose_y = product.Attr<bool>("trans_y", false)});
      return found->add == nullptr ? y : y + graph->VariableOf(found->add->Input("Y")[0]);
    });
  }
}

void FindTransposes(CompositionGraph* graph) {
  for (Op* op : graph->OpsOf({"reshape2"})) {
    // x [N, heads, L, d] as [N · heads, L, d], transposed, as [N, heads, d, L]
    const Op* transpose = graph->Writer(op->Input("X")[0], "transpose2");
    if (transpose == nullptr || IntsOf(*transpose, "axis") != Dims{0, 2, 1}) continue;
    const Op* join = graph->Writer(transpose->Input("X")[0], "reshape2");
    if (join == nullptr) continue;
    const std::string& x = join->Input("X")[0];
    const bool fits = graph->RankOf(x) == 4 && graph->RankOf(op->Output("Out")[0]) == 4 &&
                      AsksFor(*graph, *join, x, {0, 2, 3}, 0) &&
                      AsksFor(*graph, *op, x, {0, 1, 3, 2}, -1);
    if (!fits) continue;
    graph->Replace(op, "Out", [&] {
      return layers::Transpose(graph->VariableOf(x), {0, 1, 3, 2});
    });
  }
}

}  // namespace skiff
