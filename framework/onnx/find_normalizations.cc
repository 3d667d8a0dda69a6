// Rows of a layer norm are (x - mean) / sqrt(mean((x - mean)²) + epsilon), those of an RMS norm
// x / sqrt(mean(x²) + epsilon); then a scale and a shift for each element of a row may follow.
#include <algorithm>
#include <utility>

#include "framework/onnx/compositions_found.h"
#include "framework/onnx/normalization_ops.h"

namespace skiff {
namespace {

using Dims = std::vector<int64_t>;

class Search {
 public:
  explicit Search(CompositionGraph* graph) : graph_(*graph) {}

  // Looks at the square root of a variance.
  void TryAt(const Op& root) {
    if (!FindRows(root.Input("X")[0])) return;
    Op* last = FindQuotient(root);
    if (last == nullptr) return;
    std::string scale;
    std::string shift;
    last = Next(last, "elementwise_mul", &scale);
    if (!scale.empty() && !mean_.empty()) last = Next(last, "elementwise_add", &shift);
    const auto variable = [&](const std::string& name) {
      return name.empty() ? Variable() : graph_.VariableOf(name);
    };
    const NormalizationOp op = {.x = variable(x_),
                                .scale = variable(scale),
                                .shift = variable(shift),
                                .axis = axis_,
                                .epsilon = static_cast<float>(epsilon_)};
    graph_.Replace(last, "Out", [&] { return mean_.empty() ? RmsNormOf(op) : LayerNormOf(op); });
  }

 private:
  // From mean(c²) + epsilon to c, and to x, c = x or c = x - mean(x).
  bool FindRows(const std::string& variance) {
    const std::string mean = WithoutEpsilon(variance);
    const Op* reduction = mean.empty() ? nullptr : graph_.Writer(mean, "reduce_mean");
    const auto axis = reduction == nullptr ? std::nullopt : FirstReduced(*reduction);
    if (!axis) return false;
    axis_ = *axis;
    centered_ = SquareRoot(reduction->Input("X")[0]);
    if (centered_.empty()) return false;
    x_ = centered_;
    const Op* difference = graph_.Writer(centered_, "elementwise_sub");
    if (difference != nullptr && IsMeanOf(difference->Input("Y")[0], difference->Input("X")[0])) {
      x_ = difference->Input("X")[0];
      mean_ = difference->Input("Y")[0];
    }
    return true;
  }

  // Returns v of v + epsilon, "" if it is something else.
  std::string WithoutEpsilon(const std::string& name) {
    if (const Op* add = graph_.Writer(name, "elementwise_add")) {
      for (const auto& [v, number] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
        const auto epsilon = graph_.NumberOf(add->Input(number)[0]);
        if (!epsilon || *epsilon < 0) continue;
        epsilon_ = *epsilon;
        return graph_.RankOf(add->Input(v)[0]) == graph_.RankOf(name) ? add->Input(v)[0] : "";
      }
    }
    const Op* scale = graph_.Writer(name, "scale");
    const bool adds = scale != nullptr && scale->Input("ScaleTensor").empty() &&
                      scale->Attr<float>("scale", 1.0f) == 1.0f &&
                      scale->Attr<float>("bias", 0.0f) >= 0.0f;
    if (!adds) return "";
    epsilon_ = scale->Attr<float>("bias", 0.0f);
    return scale->Input("X")[0];
  }

  // Returns the first dim that the reduction is over, if these are the last ones, which stay as 1.
  std::optional<int64_t> FirstReduced(const Op& reduction) const {
    const auto rank = static_cast<int64_t>(graph_.RankOf(reduction.Input("X")[0]));
    Dims dims = IntsOf(reduction, "dim");
    for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
    std::ranges::sort(dims);
    const auto count = static_cast<int64_t>(dims.size());
    const bool are_rows = !reduction.Attr<bool>("reduce_all", false) &&
                          reduction.Attr<bool>("keep_dim", false) && count > 0 && count < rank;
    if (!are_rows) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) {
      if (dims[static_cast<size_t>(i)] != rank - count + i) return std::nullopt;
    }
    return rank - count;
  }

  // Returns c of c², "" if it is something else.
  std::string SquareRoot(const std::string& square) const {
    const Op* op = graph_.Writer(square);
    if (op == nullptr) return "";
    const bool is_square =
        op->type == "square" ||
        (op->type == "pow" && op->Input("FactorTensor").empty() &&
         op->Attr<float>("factor", 1.0f) == 2.0f) ||
        (op->type == "elementwise_pow" && graph_.NumberOf(op->Input("Y")[0]) == 2.0 &&
         graph_.RankOf(op->Input("X")[0]) == graph_.RankOf(square)) ||
        (op->type == "elementwise_mul" && op->Input("X") == op->Input("Y"));
    return is_square ? op->Input("X")[0] : "";
  }

  bool IsMeanOf(const std::string& mean, const std::string& x) const {
    const Op* reduction = graph_.Writer(mean, "reduce_mean");
    return reduction != nullptr && reduction->Input("X")[0] == x &&
           FirstReduced(*reduction) == axis_;
  }

  // Whether a value is the centered x again: exporters compute it twice.
  bool IsCentered(const std::string& name) const {
    if (name == centered_) return true;
    const Op* difference = graph_.Writer(name, "elementwise_sub");
    if (difference == nullptr || mean_.empty() || difference->Input("X")[0] != x_) return false;
    const Op* mean = graph_.Writer(difference->Input("Y")[0], "reduce_mean");
    const Op* own = graph_.Writer(mean_, "reduce_mean");
    return mean != nullptr && mean->inputs == own->inputs && mean->attrs == own->attrs;
  }

  // Returns the op that divides the centered x by the root.
  Op* FindQuotient(const Op& root) const {
    std::string name = root.Output("Out")[0];
    bool is_inverse = root.type == "rsqrt";
    Op* reader = graph_.OnlyReader(name);
    const bool inverts = !is_inverse && reader != nullptr &&
                         (reader->type == "reciprocal" ||
                          (reader->type == "elementwise_div" && reader->Input("Y")[0] == name &&
                           graph_.NumberOf(reader->Input("X")[0]) == 1.0 &&
                           graph_.RankOf(reader->Output("Out")[0]) == graph_.RankOf(name)));
    if (inverts) {
      name = reader->Output("Out")[0];
      is_inverse = true;
      reader = graph_.OnlyReader(name);
    }
    if (reader == nullptr) return nullptr;
    if (is_inverse) {
      const bool is_x = reader->type == "elementwise_mul" && reader->Input("Y")[0] == name;
      const bool is_y = reader->type == "elementwise_mul" && reader->Input("X")[0] == name;
      const bool fits = (is_x && IsCentered(reader->Input("X")[0])) ||
                        (is_y && IsCentered(reader->Input("Y")[0]));
      return fits ? reader : nullptr;
    }
    const bool divides = reader->type == "elementwise_div" && reader->Input("Y")[0] == name &&
                         IsCentered(reader->Input("X")[0]);
    return divides ? reader : nullptr;
  }

  // Returns the op of the type that combines what `op` writes with a number for each element of a
  // row, *operand; else `op`.
  Op* Next(Op* op, std::string_view type, std::string* operand) const {
    const std::string& name = op->Output("Out")[0];
    Op* next = graph_.OnlyReader(name, type);
    if (next == nullptr) return op;
    const Dims& dims = graph_.VarOf(x_).dims;
    const Dims row(dims.begin() + axis_, dims.end());
    const bool is_known = std::ranges::all_of(row, [](int64_t dim) { return dim > 0; });
    for (const auto& [in, other] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
      const std::string& found = next->Input(other)[0];
      const auto axis = next->Attr<int32_t>("axis", -1);
      const bool is_aligned = axis == -1 || axis == axis_;
      if (next->Input(in)[0] != name || graph_.VarOf(found).dims != row || !is_aligned) continue;
      if (!is_known) continue;
      *operand = found;
      return next;
    }
    return op;
  }

  CompositionGraph& graph_;
  std::string x_;
  std::string centered_;
  std::string mean_;  // "": nothing is subtracted
  int64_t axis_ = 0;
  double epsilon_ = 0;
};

}  // namespace

void FindNormalizations(CompositionGraph* graph) {
  for (const Op* op : graph->OpsOf({"sqrt", "rsqrt"})) Search(graph).TryAt(*op);
}

}  // namespace skiff
