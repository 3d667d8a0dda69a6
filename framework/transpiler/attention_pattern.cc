#include "framework/transpiler/attention_pattern.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skiff {
namespace {

constexpr size_t kNobody = PlanUses::kNobody;

// [N, L, heads, D] to [N, heads, L, D] and back, and to [N, heads, D, L].
const std::vector<int64_t> kHeadsFirst = {0, 2, 1, 3};
const std::vector<int64_t> kHeadsFirstTransposed = {0, 2, 3, 1};

// How a product of matrices treats its operands.
struct ProductForm {
  bool transposes_x = false;
  bool transposes_y = false;
  double alpha = 1;
};

// What searches in both directions share: steps from one instruction to the next, which remember
// the instructions that they pass.
class Search {
 public:
  Search(const Plan& plan, const PlanRewrite& rewrite) : plan_(plan), rewrite_(rewrite) {}

 protected:
  const Instruction& At(size_t i) const { return plan_.instructions[i]; }
  OpContext ContextAt(size_t i) const { return ContextOf(plan_, At(i)); }
  const Shape& ShapeOf(ValueId value) const { return rewrite_.ShapeOf(value); }

  // The instruction that writes the value, if it is an op of the type.
  size_t Writer(ValueId value, std::string_view type) const {
    const size_t i = rewrite_.WriterOf(value);
    return i != kNobody && rewrite_.Is(i, type) ? i : kNobody;
  }
  // The first instruction that reads the value in the slot of an op of the type.
  size_t Reader(ValueId value, std::string_view type, std::string_view slot) const {
    if (!value) return kNobody;
    for (const size_t i : rewrite_.ReadersOf(value)) {
      if (i < plan_.instructions.size() && rewrite_.Is(i, type) && At(i).InputIn(slot) == value)
        return i;
    }
    return kNobody;
  }
  bool Take(size_t i) {
    if (i == kNobody) return false;
    taken_.insert(i);
    return true;
  }

  // Products are of two op types, with attributes of different names. `suffix` is that of the type:
  // "" or "_grad".
  static std::vector<std::string> ProductTypes(const std::string& suffix) {
    return {"matmul_v2" + suffix, "matmul" + suffix};
  }
  ProductForm FormOf(size_t i) const {
    const OpContext context = ContextAt(i);
    if (context.op().type.starts_with("matmul_v2")) {
      return {.transposes_x = context.Attr<bool>("trans_x"),
              .transposes_y = context.Attr<bool>("trans_y")};
    }
    return {.transposes_x = context.Attr<bool>("transpose_X"),
            .transposes_y = context.Attr<bool>("transpose_Y"),
            .alpha = context.Attr<float>("alpha")};
  }

  // The factor of a scale without bias; 0 for any other.
  double FactorOf(size_t scale) const {
    const OpContext context = ContextAt(scale);
    const bool is_factor = context.Attr<float>("bias") == 0.0f && !context.HasInput("ScaleTensor");
    return is_factor ? context.Attr<float>("scale") : 0.0;
  }
  // The axes by which heads of keys are transposed.
  static const std::vector<int64_t>& KeyAxes(const ProductForm& form) {
    return form.transposes_y ? kHeadsFirst : kHeadsFirstTransposed;
  }
  bool Permutes(size_t transpose, const std::vector<int64_t>& axes) const {
    return ContextAt(transpose).IntsAttr("axis") == axes;
  }

  const Plan& plan_;
  const PlanRewrite& rewrite_;
  std::set<size_t> taken_;
};

class ForwardSearch : private Search {
 public:
  using Search::Search;

  std::optional<AttentionForward> Run(size_t softmax) {
    found_.softmax = softmax;
    found_.weights = At(softmax).OutputIn("Out");
    Take(softmax);
    const int64_t axis = ContextAt(softmax).IntAttr("axis");
    if (ShapeOf(found_.weights).rank() != 4 || (axis != -1 && axis != 3)) return std::nullopt;
    if (!FindScores(At(softmax).InputIn("X")) || !FindOut()) return std::nullopt;
    found_.instructions = taken_;
    return found_;
  }

 private:
  // The first product and what it reads, with or without a bias after it.
  bool FindScores(ValueId scores) {
    if (FindProduct(scores)) return true;
    const size_t add = Writer(scores, "elementwise_add");
    if (add == kNobody) return false;
    const ValueId x = At(add).InputIn("X");
    const ValueId y = At(add).InputIn("Y");
    const int64_t axis = ContextAt(add).IntAttr("axis");
    for (const auto& [product, bias] : {std::pair(x, y), std::pair(y, x)}) {
      const bool is_aligned = axis == -1 || axis == ShapeOf(x).rank() - ShapeOf(y).rank();
      if (!is_aligned || !IsBias(bias, ShapeOf(scores)) || !FindProduct(product)) continue;
      found_.bias = bias;
      return Take(add);
    }
    return false;
  }

  // Whether the op adds values of this shape.
  bool IsBias(ValueId bias, const Shape& scores) const {
    const Shape& shape = ShapeOf(bias);
    if (shape.rank() < 1 || shape.rank() > 4 || shape.dim(-1) != scores.dim(-1)) return false;
    for (int axis = 1; axis <= shape.rank(); ++axis) {
      if (shape.dim(-axis) != scores.dim(-axis) && shape.dim(-axis) != 1) return false;
    }
    return true;
  }

  bool FindProduct(ValueId scores) {
    const std::set<size_t> before = taken_;
    found_.score_factor = 1;
    const ValueId unscaled = Unscaled(scores, &found_.score_factor);
    for (const std::string& type : ProductTypes("")) {
      const size_t product = Writer(unscaled, type);
      if (product == kNobody || ShapeOf(unscaled) != ShapeOf(found_.weights)) continue;
      found_.score_product = product;
      if (FindOperands(FormOf(product))) return Take(product);
    }
    taken_ = before;
    return false;
  }

  bool FindOperands(const ProductForm& form) {
    if (form.transposes_x) return false;
    const Instruction& product = At(found_.score_product);
    found_.query_factor = 1;
    found_.key_factor = 1;
    found_.query = WholeOf(Unscaled(product.InputIn("X"), &found_.query_factor), kHeadsFirst);
    found_.key = WholeOf(Unscaled(product.InputIn("Y"), &found_.key_factor), KeyAxes(form));
    found_.scale = found_.query_factor * found_.key_factor * found_.score_factor * form.alpha;
    return found_.query && found_.key;
  }

  // What the value is, but for a factor, by which *factor is multiplied.
  ValueId Unscaled(ValueId value, double* factor) {
    for (;;) {
      const size_t scale = Writer(value, "scale");
      if (scale == kNobody || FactorOf(scale) == 0) return value;
      *factor *= FactorOf(scale);
      value = At(scale).InputIn("X");
      Take(scale);
    }
  }

  // The [N, L, C] that was split into these heads; none if it wasn't.
  ValueId WholeOf(ValueId heads, const std::vector<int64_t>& axes) {
    const size_t transpose = Writer(heads, "transpose2");
    if (transpose == kNobody || !Permutes(transpose, axes)) return {};
    const ValueId split = At(transpose).InputIn("X");
    const size_t reshape = Writer(split, "reshape2");
    if (reshape == kNobody) return {};
    const ValueId whole = At(reshape).InputIn("X");
    if (!IsSplit(ShapeOf(whole), ShapeOf(split))) return {};
    Take(transpose);
    Take(reshape);
    return whole;
  }

  // [N, L, C] and [N, L, heads, C / heads]
  static bool IsSplit(const Shape& whole, const Shape& split) {
    return whole.rank() == 3 && split.rank() == 4 && whole[0] == split[0] && whole[1] == split[1] &&
           whole[2] > 0 && whole[2] == split[2] * split[3];
  }

  bool FindOut() {
    found_.mixed = found_.weights;
    const size_t dropout = Reader(found_.weights, "dropout", "X");
    if (dropout != kNobody) {
      if (!IsSupported(dropout)) return false;
      found_.dropout = dropout;
      found_.mixed = At(dropout).OutputIn("Out");
      Take(dropout);
    }
    for (const std::string& type : ProductTypes("")) {
      found_.value_product = Reader(found_.mixed, type, "X");
      if (Take(found_.value_product)) return FindOutOf(found_.value_product);
    }
    return false;
  }

  bool IsSupported(size_t dropout) const {
    const OpContext context = ContextAt(dropout);
    const float p = context.Attr<float>("dropout_prob");
    return p < 1.0f && !context.HasInput("Seed") &&
           (p == 0.0f || context.Attr<std::string>("dropout_implementation") == "upscale_in_train");
  }

  bool FindOutOf(size_t product) {
    const ProductForm form = FormOf(product);
    if (form.transposes_x || form.transposes_y || form.alpha != 1) return false;
    found_.value = WholeOf(At(product).InputIn("Y"), kHeadsFirst);
    if (!found_.value) return false;
    const size_t transpose = Reader(At(product).OutputIn("Out"), "transpose2", "X");
    if (transpose == kNobody || !Permutes(transpose, kHeadsFirst)) return false;
    const ValueId split = At(transpose).OutputIn("Out");
    const size_t reshape = Reader(split, "reshape2", "X");
    if (reshape == kNobody) return false;
    found_.out = At(reshape).OutputIn("Out");
    found_.heads = ShapeOf(split)[2];
    return IsSplit(ShapeOf(found_.out), ShapeOf(split)) && HaveOneWidth() && Take(transpose) &&
           Take(reshape);
  }

  // A product broadcasts over sequences and heads, and values may be wider than keys.
  bool HaveOneWidth() const {
    const Shape& query = ShapeOf(found_.query);
    const Shape& key = ShapeOf(found_.key);
    return key == ShapeOf(found_.value) && key[0] == query[0] && key[2] == query[2] &&
           ShapeOf(found_.out) == query && ShapeOf(found_.weights)[1] == found_.heads;
  }

  AttentionForward found_;
};

class BackwardSearch : private Search {
 public:
  BackwardSearch(const Plan& plan, const PlanRewrite& rewrite, const AttentionForward& forward)
      : Search(plan, rewrite), forward_(forward) {}

  std::optional<AttentionBackward> Run() {
    const size_t product = ProductGradient(forward_.value_product);
    if (!Take(product) || !FindOutGradient(At(product).InputIn("Out@GRAD"))) return std::nullopt;
    found_.value_product = product;
    const Instruction& of_value = At(product);
    found_.value_gradient = of_value.OutputIn("Y@GRAD");
    if (!JoinHeads(forward_.value, 1, kHeadsFirst, &found_.value_gradient) ||
        !FindScoreGradient(of_value.OutputIn("X@GRAD"))) {
      return std::nullopt;
    }
    found_.instructions = taken_;
    return found_;
  }

 private:
  // The gradient of a product.
  size_t ProductGradient(size_t product) const {
    const Instruction& forward = At(product);
    const size_t i = Reader(forward.InputIn("X"), forward.op->type + "_grad", "X");
    if (i == kNobody || At(i).InputIn("Y") != forward.InputIn("Y")) return kNobody;
    return HasAttributesOf(i, product) ? i : kNobody;
  }

  // Whether a gradient op has the attributes of its forward op.
  bool HasAttributesOf(size_t gradient, size_t forward) const {
    return std::ranges::all_of(At(gradient).def->attrs, [&](const AttrDef& attr) {
      return SameAttribute(*EffectiveAttr(*At(gradient).op, attr),
                           *EffectiveAttr(*At(forward).op, attr));
    });
  }

  bool FindOutGradient(ValueId gradient) {
    const size_t transpose = Writer(gradient, "transpose2_grad");
    if (transpose == kNobody || !Permutes(transpose, kHeadsFirst)) return false;
    const size_t reshape = Writer(At(transpose).InputIn("Out@GRAD"), "reshape2_grad");
    if (reshape == kNobody) return false;
    found_.out_gradient = At(reshape).InputIn("Out@GRAD");
    return ShapeOf(found_.out_gradient) == ShapeOf(forward_.out) && Take(transpose) &&
           Take(reshape);
  }

  // Follows *gradient, of heads, to that of the [N, L, C] that they were split from. Without a
  // gradient there is nothing to follow.
  bool JoinHeads(ValueId whole, double factor, const std::vector<int64_t>& axes,
                 ValueId* gradient) {
    if (!*gradient) return true;
    if (!PassScales(factor, gradient)) return false;
    const size_t transpose = Reader(*gradient, "transpose2_grad", "Out@GRAD");
    if (!Take(transpose) || !Permutes(transpose, axes)) return false;
    const size_t reshape = Reader(At(transpose).OutputIn("X@GRAD"), "reshape2_grad", "Out@GRAD");
    if (!Take(reshape)) return false;
    *gradient = At(reshape).OutputIn("X@GRAD");
    return *gradient && ShapeOf(*gradient) == ShapeOf(whole);
  }

  // Follows the gradient of a value that was scaled by `factor` in all.
  bool PassScales(double factor, ValueId* gradient) {
    double passed = 1;
    for (size_t scale = Reader(*gradient, "scale", "X"); scale != kNobody;
         scale = Reader(*gradient, "scale", "X")) {
      passed *= FactorOf(scale);
      *gradient = At(scale).OutputIn("Out");
      Take(scale);
    }
    // The factors may have been multiplied in another order.
    return std::abs(passed - factor) <= 1e-12 * std::abs(factor);
  }

  // From the gradient of the mixed weights to those of queries and keys. All may be absent.
  bool FindScoreGradient(ValueId gradient) {
    if (!gradient) return true;
    if (forward_.dropout != kNobody && !PassDropout(&gradient)) return false;
    const size_t softmax = Reader(gradient, "softmax_grad", "Out@GRAD");
    if (!Take(softmax) || At(softmax).InputIn("Out") != forward_.weights) return false;
    gradient = At(softmax).OutputIn("X@GRAD");
    if (!HasAttributesOf(softmax, forward_.softmax)) return false;
    if (forward_.bias && !PassBias(&gradient)) return false;
    if (!PassScales(forward_.score_factor, &gradient)) return false;
    const size_t product = ProductGradient(forward_.score_product);
    if (!Take(product) || At(product).InputIn("Out@GRAD") != gradient) return false;
    found_.query_gradient = At(product).OutputIn("X@GRAD");
    found_.key_gradient = At(product).OutputIn("Y@GRAD");
    return JoinHeads(forward_.query, forward_.query_factor, kHeadsFirst, &found_.query_gradient) &&
           JoinHeads(forward_.key, forward_.key_factor, KeyAxes(FormOf(forward_.score_product)),
                     &found_.key_gradient);
  }

  bool PassDropout(ValueId* gradient) {
    const size_t dropout = Reader(*gradient, "dropout_grad", "Out@GRAD");
    if (!Take(dropout) || !HasAttributesOf(dropout, forward_.dropout)) return false;
    const ValueId mask = At(dropout).InputIn("Mask");
    *gradient = At(dropout).OutputIn("X@GRAD");
    return !mask || mask == At(forward_.dropout).OutputIn("Mask");
  }

  // The other operand is the bias, whose gradient nobody may want.
  bool PassBias(ValueId* gradient) {
    const size_t add = Reader(*gradient, "elementwise_add_grad", "Out@GRAD");
    if (!Take(add)) return false;
    const bool bias_is_y = At(add).InputIn("Y") == forward_.bias;
    if (!bias_is_y && At(add).InputIn("X") != forward_.bias) return false;
    *gradient = At(add).OutputIn(bias_is_y ? "X@GRAD" : "Y@GRAD");
    return static_cast<bool>(*gradient);
  }

  const AttentionForward& forward_;
  AttentionBackward found_;
};

}  // namespace

std::optional<AttentionForward> FindAttention(const Plan& plan, const PlanRewrite& rewrite,
                                              size_t softmax) {
  return ForwardSearch(plan, rewrite).Run(softmax);
}

std::optional<AttentionBackward> FindAttentionGradient(const Plan& plan, const PlanRewrite& rewrite,
                                                       const AttentionForward& forward) {
  return BackwardSearch(plan, rewrite, forward).Run();
}

}  // namespace skiff
