// Files scale queries, keys or scores, transpose keys in one step or in two, mask scores by Where,
// repeat and rotate heads behind the transpose that splits them, and join rows in between. What
// comes out here is what layers::Attention appends.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/compositions_found.h"

namespace skiff {
namespace {

using Axes = std::vector<int64_t>;

const Axes kHeadsFirst = {0, 2, 1, 3};             // [N, L, heads, d] to [N, heads, L, d] and back
const Axes kRowsFirstOfTransposed = {0, 3, 1, 2};  // [N, heads, d, L] to [N, L, heads, d]

// factor · base, whose axis axes[i] is axis i of the value.
struct Operand {
  std::string base;
  Axes axes = {0, 1, 2, 3};
  double factor = 1;
};

class Search {
 public:
  explicit Search(CompositionGraph* graph) : graph_(*graph) {}

  void TryAt(Op* softmax) {
    const std::string& weights = softmax->Output("Out")[0];
    const auto axis = softmax->Attr<int32_t>("axis", -1);
    if (graph_.RankOf(weights) != 4 || (axis != -1 && axis != 3)) return;
    if (!FindScores(softmax->Input("X")[0]) || !FindValues(weights)) return;
    const Operand query = Followed(product_->Input("X")[0], true);
    const Operand key = Followed(product_->Input("Y")[0], true);
    const bool transposes = product_->Attr<bool>("trans_y", false);
    const Axes& key_axes = transposes ? kHeadsFirst : kRowsFirstOfTransposed;
    const Operand value = Followed(mix_->Input("Y")[0], false);
    const bool are_heads =
        HasHeads(query, kHeadsFirst) && HasHeads(value, kHeadsFirst) && HasHeads(key, key_axes);
    is_guarded_ = has_guard_ && !AreFinite();
    if (!are_heads || (is_guarded_ && !KnowsHeads())) return;
    const double scale = query.factor * key.factor * factor_;
    graph_.ReadInstead(softmax, "X", [&] {
      Variable scaled = Heads(query, kHeadsFirst);
      if (scale != 1) scaled = layers::Scale(scaled, {.scale = static_cast<float>(scale)});
      const Variable keys = Heads(key, key_axes);
      const Variable scores = layers::MatMul(scaled, keys, {.transpose_y = true});
      return biases_.empty() ? scores : scores + Bias();
    });
    graph_.ReadInstead(mix_, "X", [&] { return graph_.VariableOf(weights); });
    graph_.ReadInstead(mix_, "Y", [&] { return Heads(value, kHeadsFirst); });
    JoinHeads();
  }

 private:
  // ---- what is there

  // A mask: a number to add, or what says where scores stay; elsewhere they are -infinity.
  struct Mask {
    std::string name;
    bool is_condition = false;
    bool hides = false;  // the condition says where scores vanish
  };

  std::optional<double> FactorOf(const Op& op, std::string* operand) const {
    if (op.type == "scale") {
      const bool is_factor =
          op.Input("ScaleTensor").empty() && op.Attr<float>("bias", 0.0f) == 0.0f;
      *operand = op.Input("X")[0];
      return is_factor ? std::optional<double>(op.Attr<float>("scale", 1.0f)) : std::nullopt;
    }
    const bool divides = op.type == "elementwise_div";
    if (!divides && op.type != "elementwise_mul") return std::nullopt;
    for (const auto& [of_value, of_number] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
      const auto number = graph_.NumberOf(op.Input(of_number)[0]);
      *operand = op.Input(of_value)[0];
      if (number && graph_.RankOf(*operand) == 4) return divides ? 1 / *number : *number;
      if (divides) break;
    }
    return std::nullopt;
  }

  // Follows a value back through transposes, and through factors if they may be moved.
  Operand Followed(const std::string& name, bool with_factors) const {
    Operand found{.base = name};
    for (;;) {
      const Op* op = graph_.Writer(found.base);
      if (op == nullptr) return found;
      std::string operand;
      if (op->type == "transpose2") {
        const Axes inner = IntsOf(*op, "axis");
        for (int64_t& axis : found.axes) axis = inner[static_cast<size_t>(axis)];
        found.base = op->Input("X")[0];
        continue;
      }
      const auto factor = with_factors ? FactorOf(*op, &operand) : std::nullopt;
      if (!factor || !std::isfinite(*factor)) return found;
      found.factor *= *factor;
      found.base = operand;
    }
  }

  bool FindScores(const std::string& scores) {
    if (FindProduct(scores)) return true;
    const Op* op = graph_.Writer(scores);
    if (op == nullptr) return false;
    if (op->type == "elementwise_add") {
      for (const auto& [rest, bias] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
        const std::string& name = op->Input(bias)[0];
        const auto rank = static_cast<int32_t>(graph_.RankOf(name));
        const auto axis = op->Attr<int32_t>("axis", -1);
        const bool is_aligned = rank >= 1 && rank <= 4 && (axis == -1 || axis == 4 - rank);
        if (graph_.RankOf(op->Input(rest)[0]) != 4 || !is_aligned) continue;
        if (!FindScores(op->Input(rest)[0])) continue;
        biases_.push_back({.name = name});
        return true;
      }
    }
    return op->type == "where" && FindHidden(*op);
  }

  // Scores that are -infinity where a condition says so. Other numbers make something else of rows
  // that are hidden as a whole than a mask that is added.
  bool FindHidden(const Op& where) {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    const std::string condition = graph_.Unbroadcast(where.Input("Condition")[0]);
    if (graph_.RankOf(condition) == 0) return false;
    for (const auto& [rest, hidden] : {std::pair("X", "Y"), std::pair("Y", "X")}) {
      if (graph_.UniformOf(where.Input(hidden)[0]) != kHidden) continue;
      if (!FindScores(where.Input(rest)[0])) continue;
      biases_.push_back({.name = condition, .is_condition = true, .hides = rest[0] == 'Y'});
      return true;
    }
    return false;
  }

  bool FindProduct(const std::string& scores) {
    std::string name = scores;
    factor_ = 1;
    for (;;) {
      const Op* op = graph_.Writer(name);
      if (op == nullptr || graph_.RankOf(name) != 4) return false;
      if (op->type == "matmul_v2") {
        product_ = op;
        return !op->Attr<bool>("trans_x", false) && graph_.RankOf(op->Input("X")[0]) == 4 &&
               graph_.RankOf(op->Input("Y")[0]) == 4;
      }
      std::string operand;
      const auto factor = FactorOf(*op, &operand);
      if (!factor || !std::isfinite(*factor)) return false;
      factor_ *= *factor;
      name = operand;
    }
  }

  // The product with the values, and the guard before it that makes zeros of NaN.
  bool FindValues(const std::string& weights) {
    const Op* guard = GuardOf(weights);
    has_guard_ = guard != nullptr;
    const std::string& read = has_guard_ ? guard->Output("Out")[0] : weights;
    mix_ = graph_.OnlyReader(read, "matmul_v2");
    return mix_ != nullptr && mix_->Input("X")[0] == read && !mix_->Attr<bool>("trans_x", false) &&
           !mix_->Attr<bool>("trans_y", false) && graph_.RankOf(mix_->Input("Y")[0]) == 4;
  }

  // Returns where(isnan(weights), 0, weights).
  const Op* GuardOf(const std::string& weights) const {
    for (const Op* op : graph_.ReadersOf(weights)) {
      if (op->type != "where" || op->Input("Y")[0] != weights) continue;
      const Op* is_nan = graph_.Writer(op->Input("Condition")[0], "isnan_v2");
      const bool is_guard = is_nan != nullptr && is_nan->Input("X")[0] == weights &&
                            graph_.UniformOf(op->Input("X")[0]) == 0.0;
      const auto is_inside = [&](const Op* reader) { return reader == op || reader == is_nan; };
      if (is_guard && std::ranges::all_of(graph_.ReadersOf(weights), is_inside)) return op;
    }
    return nullptr;
  }

  // Whether no row of scores is hidden as a whole by -infinity, so that a NaN of the weights is one
  // of queries or keys.
  bool AreFinite() const {
    return std::ranges::all_of(biases_, [&](const Mask& mask) {
      if (mask.is_condition) return false;
      if (graph_.IsFiniteConstant(mask.name)) return true;
      const Op* where = graph_.Writer(mask.name, "where");
      const auto is_finite = [&](const char* slot) {
        const auto number = graph_.UniformOf(where->Input(slot)[0]);
        return number && std::isfinite(*number);
      };
      return where != nullptr && is_finite("X") && is_finite("Y");
    });
  }

  // Whether one of the extents of the result is known by which its rows are split again.
  bool KnowsHeads() const {
    const auto& dims = graph_.VarOf(mix_->Output("Out")[0]).dims;
    return dims[1] > 0 || dims[3] > 0;
  }

  // ---- what is made

  static Axes Composed(const Operand& operand, const Axes& axes) {
    Axes composed;
    for (const int64_t axis : axes) composed.push_back(operand.axes[static_cast<size_t>(axis)]);
    return composed;
  }
  // Returns the extents of heads and of their columns, -1 where they aren't known.
  std::array<int64_t, 2> HeadDims(const Operand& operand, const Axes& axes) const {
    const Axes composed = Composed(operand, axes);
    const auto& dims = graph_.VarOf(operand.base).dims;
    return {dims[static_cast<size_t>(composed[2])], dims[static_cast<size_t>(composed[3])]};
  }
  bool IsSplit(const Operand& operand, const Axes& axes) const {
    const Op* reshape = graph_.Writer(operand.base, "reshape2");
    return Composed(operand, axes) == Axes{0, 1, 2, 3} && reshape != nullptr &&
           graph_.RankOf(reshape->Input("X")[0]) == 3;
  }
  // Whether Heads can make the operand, whose `axes` are [N, L, heads, d].
  bool HasHeads(const Operand& operand, const Axes& axes) const {
    if (graph_.RankOf(operand.base) != 4) return false;
    const auto [heads, columns] = HeadDims(operand, axes);
    return IsSplit(operand, axes) || heads > 0 || columns > 0;
  }

  // [N, L, heads, d] by way of [N, L, C].
  static Variable Resplit(const Variable& rows, int64_t heads, int64_t columns) {
    const int64_t width = heads > 0 && columns > 0 ? heads * columns : -1;
    const Variable whole = layers::Reshape(rows, {0, 0, width});
    return layers::Reshape(whole, columns > 0 ? Axes{0, 0, -1, columns} : Axes{0, 0, heads, -1});
  }

  // Returns the operand without its factor as [N, heads, L, d], split from [N, L, C].
  Variable Heads(const Operand& operand, const Axes& axes) const {
    Variable rows = graph_.VariableOf(operand.base);
    const Axes composed = Composed(operand, axes);
    if (composed != Axes{0, 1, 2, 3}) rows = layers::Transpose(rows, composed);
    if (!IsSplit(operand, axes)) {
      const auto [heads, columns] = HeadDims(operand, axes);
      rows = Resplit(rows, heads, columns);
    }
    return layers::Transpose(rows, kHeadsFirst);
  }

  Variable BiasOf(const Mask& mask) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    const Variable given = graph_.VariableOf(mask.name);
    if (!mask.is_condition) return given;
    const Variable bias =
        mask.hides ? layers::Where(given, kHidden, 0.0) : layers::Where(given, 0.0, kHidden);
    const DType dtype = graph_.VarOf(product_->Output("Out")[0]).dtype;
    return dtype == bias.dtype() ? bias : layers::Cast(bias, dtype);
  }
  Variable Bias() const {
    Variable bias = BiasOf(biases_[0]);
    for (size_t i = 1; i < biases_.size(); ++i) bias = bias + BiasOf(biases_[i]);
    return bias;
  }

  // Lets [N, heads, L, d] become [N, L, C] before anything else is made of it.
  void JoinHeads() {
    const std::string mixed = mix_->Output("Out")[0];
    const auto& dims = graph_.VarOf(mixed).dims;
    Op* transpose = graph_.OnlyReader(mixed, "transpose2");
    const bool joins = transpose != nullptr && IntsOf(*transpose, "axis") == kHeadsFirst;
    if (joins && !is_guarded_) {
      const Op* reshape = graph_.OnlyReader(transpose->Output("Out")[0], "reshape2");
      if (reshape != nullptr && graph_.RankOf(reshape->Output("Out")[0]) == 3) return;
    }
    if (!KnowsHeads()) return;
    const auto rejoined = [&](const Variable& out) {
      Variable rows = layers::Transpose(out, kHeadsFirst);
      rows = layers::Reshape(rows, {0, 0, dims[1] > 0 && dims[3] > 0 ? dims[1] * dims[3] : -1});
      // A row of weights that is NaN makes NaN of its results, and zeros would make zeros.
      if (is_guarded_) rows = layers::Where(layers::IsNan(rows), 0.0, rows);
      return layers::Reshape(rows, dims[3] > 0 ? Axes{0, 0, -1, dims[3]} : Axes{0, 0, dims[1], -1});
    };
    if (joins) {
      graph_.Replace(transpose, "Out", [&] { return rejoined(graph_.VariableOf(mixed)); });
      return;
    }
    graph_.Replace(mix_, "Out", [&] {
      const Variable out = layers::MatMul(graph_.VariableOf(mix_->Input("X")[0]),
                                          graph_.VariableOf(mix_->Input("Y")[0]));
      return layers::Transpose(rejoined(out), kHeadsFirst);
    });
  }

  CompositionGraph& graph_;
  const Op* product_ = nullptr;  // of queries and keys
  Op* mix_ = nullptr;            // of weights and values
  std::vector<Mask> biases_;
  double factor_ = 1;  // of the scores
  bool has_guard_ = false;
  bool is_guarded_ = false;  // and needs to stay so
};

}  // namespace

void FindAttention(CompositionGraph* graph) {
  for (Op* op : graph->OpsOf({"softmax"})) Search(graph).TryAt(op);
}

}  // namespace skiff
