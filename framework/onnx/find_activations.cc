// An activation is a product of x and a function of x, such as 0.5 · x · (1 + erf(x / √2)). Files
// have its factors and terms in many orders. So both what the function reads and the whole are
// taken for polynomials, in x and in the function, whose coefficients tell.
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/onnx/compositions_found.h"

namespace skiff {
namespace {

// By the degrees in x and in the function of x: the coefficients, none of which is 0.
using Polynomial = std::map<std::pair<int, int>, double>;

constexpr std::pair<int, int> kOne = {0, 0};
constexpr std::pair<int, int> kX = {1, 0};
constexpr std::pair<int, int> kCube = {3, 0};
constexpr std::pair<int, int> kF = {0, 1};
constexpr std::pair<int, int> kXF = {1, 1};

constexpr int kMostDepth = 12;
constexpr int kMostDegree = 4;
// Returns by how much of itself a coefficient may differ: constants of files are rounded, some of
// them twice.
double ToleranceOf(DType dtype) {
  return dtype == DType::kFloat16 ? 1e-3 : dtype == DType::kBFloat16 ? 8e-3 : 1e-6;
}

bool AreClose(const Polynomial& a, const Polynomial& b, double tolerance) {
  if (a.size() != b.size()) return false;
  for (const auto& [degrees, coefficient] : a) {
    const auto other = b.find(degrees);
    if (other == b.end()) return false;
    if (!(std::abs(coefficient - other->second) <= tolerance * std::abs(coefficient))) return false;
  }
  return true;
}

Polynomial Sum(const Polynomial& a, const Polynomial& b, double factor) {
  Polynomial sum = a;
  for (const auto& [degrees, coefficient] : b) sum[degrees] += factor * coefficient;
  std::erase_if(sum, [](const auto& term) { return term.second == 0; });
  return sum;
}

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [of_a, x] : a) {
    for (const auto& [of_b, y] : b) {
      const std::pair degrees = {of_a.first + of_b.first, of_a.second + of_b.second};
      if (degrees.first > kMostDegree || degrees.second > kMostDegree) return std::nullopt;
      product[degrees] += x * y;
    }
  }
  std::erase_if(product, [](const auto& term) { return term.second == 0; });
  return product;
}

std::optional<Polynomial> Power(const Polynomial& a, double exponent) {
  if (exponent != 2 && exponent != 3) return std::nullopt;
  const auto square = Product(a, a);
  return exponent == 2 || !square ? square : Product(*square, a);
}

bool IsArithmetic(const Op& op) {
  static const auto& types =
      *new std::set<std::string>{"elementwise_add", "elementwise_sub", "elementwise_mul",
                                 "elementwise_div", "elementwise_pow", "pow",
                                 "scale",           "square"};
  return types.contains(op.type);
}

// Values as polynomials in x and f; f may be empty. All have the shape of x, except numbers.
class Reader {
 public:
  Reader(const CompositionGraph& graph, std::string x, std::string f)
      : graph_(graph), x_(std::move(x)), f_(std::move(f)) {}

  std::optional<Polynomial> Read(const std::string& name, int depth = 0) const {
    if (name == x_) return Polynomial{{kX, 1.0}};
    if (name == f_) return Polynomial{{kF, 1.0}};
    if (const auto number = graph_.NumberOf(name)) return Constant(*number);
    const Op* op = graph_.Writer(name);
    if (op == nullptr || depth > kMostDepth || !IsArithmetic(*op)) return std::nullopt;
    if (graph_.RankOf(name) != graph_.RankOf(x_)) return std::nullopt;
    const auto x = Read(op->Input("X")[0], depth + 1);
    if (!x) return std::nullopt;
    if (op->type == "scale") return Scaled(*op, *x);
    if (op->type == "square") return Power(*x, 2);
    if (op->type == "pow") {
      const bool is_known = op->Input("FactorTensor").empty();
      return is_known ? Power(*x, op->Attr<float>("factor", 1.0f)) : std::nullopt;
    }
    const auto y = Read(op->Input("Y")[0], depth + 1);
    return y ? Combined(op->type, *x, *y) : std::nullopt;
  }

 private:
  static Polynomial Constant(double number) {
    return number == 0 ? Polynomial() : Polynomial{{kOne, number}};
  }

  static std::optional<Polynomial> Scaled(const Op& op, const Polynomial& x) {
    if (!op.Input("ScaleTensor").empty()) return std::nullopt;
    const double scale = op.Attr<float>("scale", 1.0f);
    const double bias = op.Attr<float>("bias", 0.0f);
    const bool is_after = op.Attr<bool>("bias_after_scale", true);
    return Sum(Sum({}, x, scale), Constant(1), is_after ? bias : scale * bias);
  }

  static std::optional<Polynomial> Combined(const std::string& type, const Polynomial& x,
                                            const Polynomial& y) {
    if (type == "elementwise_add") return Sum(x, y, 1);
    if (type == "elementwise_sub") return Sum(x, y, -1);
    if (type == "elementwise_mul") return Product(x, y);
    const bool is_number = y.size() == 1 && y.begin()->first == kOne;
    if (!is_number) return std::nullopt;
    const double number = y.begin()->second;
    return type == "elementwise_div" ? Sum({}, x, 1 / number) : Power(x, number);
  }

  const CompositionGraph& graph_;
  std::string x_;
  std::string f_;
};

// An activation: a function of `argument`, and the whole.
struct Activation {
  std::string_view function;
  Polynomial argument;
  Polynomial whole;
  Variable (*make)(const Variable& x);
};

const std::vector<Activation>& Activations() {
  const double root = std::sqrt(2 / M_PI);
  static const auto& all = *new std::vector<Activation>{
      {"erf",
       {{kX, std::sqrt(0.5)}},
       {{kX, 0.5}, {kXF, 0.5}},
       [](const Variable& x) { return layers::Gelu(x); }},
      {"tanh",
       {{kX, root}, {kCube, root * 0.044715}},
       {{kX, 0.5}, {kXF, 0.5}},
       [](const Variable& x) { return layers::Gelu(x, true); }},
      {"sigmoid", {{kX, 1.0}}, {{kXF, 1.0}}, [](const Variable& x) { return layers::Swish(x); }},
      {"hard_sigmoid",
       {{kX, 1.0}},
       {{kXF, 1.0}},
       [](const Variable& x) { return layers::HardSwish(x); }},
      {"clip",
       {{kX, 1.0}, {kOne, 3.0}},
       {{kXF, 1.0 / 6}},
       [](const Variable& x) { return layers::HardSwish(x); }},
  };
  return all;
}

// Whether the function is the one of the activation, not one with other numbers.
bool HasNumbersOf(const Op& op) {
  constexpr double kTolerance = 1e-6;
  const auto is = [&](const char* name, float fallback, double wanted) {
    return std::abs(double{op.Attr<float>(name, fallback)} - wanted) <= kTolerance * wanted;
  };
  if (op.type == "hard_sigmoid") return is("slope", 0.2f, 1.0 / 6) && is("offset", 0.5f, 0.5);
  if (op.type != "clip") return true;
  const bool is_known = op.Input("Min").empty() && op.Input("Max").empty();
  return is_known && op.Attr<float>("min", 0.0f) == 0.0f && is("max", 0.0f, 6);
}

// Returns the values that the arithmetic up to `name` reads, with those within.
void CollectOperands(const CompositionGraph& graph, const std::string& name, int depth,
                     std::vector<std::string>* operands) {
  operands->push_back(name);
  const Op* op = graph.Writer(name);
  if (op == nullptr || depth > kMostDepth / 2 || !IsArithmetic(*op)) return;
  for (const std::string& input : op->InputNames()) {
    if (!graph.NumberOf(input)) CollectOperands(graph, input, depth + 1, operands);
  }
}

// Returns the op that completes the activation of x, of which f is the function.
Op* FindWhole(const CompositionGraph& graph, const std::string& x, const std::string& f,
              const Polynomial& whole) {
  const Reader reader(graph, x, f);
  const double tolerance = ToleranceOf(graph.VarOf(x).dtype);
  std::vector<std::string> values = {f};
  for (size_t i = 0; i < values.size() && i < kMostDepth; ++i) {
    for (Op* op : graph.ReadersOf(values[i])) {
      if (!IsArithmetic(*op)) continue;
      const std::string& out = op->Output("Out")[0];
      const auto read = reader.Read(out);
      if (!read) continue;
      const bool is_whole =
          AreClose(*read, whole, tolerance) && graph.VarOf(out).dims == graph.VarOf(x).dims;
      if (is_whole) return op;
      values.push_back(out);
    }
  }
  return nullptr;
}

// mish is x · tanh(softplus(x)).
void TryMish(CompositionGraph* graph, const Op& tanh) {
  const Op* softplus = graph->Writer(tanh.Input("X")[0], "softplus");
  const std::string f = tanh.Output("Out")[0];
  if (softplus == nullptr || softplus->Attr<float>("beta", 1.0f) != 1.0f) return;
  const std::string x = softplus->Input("X")[0];
  const float threshold = softplus->Attr<float>("threshold", 20.0f);
  Op* whole = FindWhole(*graph, x, f, {{kXF, 1.0}});
  if (whole == nullptr) return;
  graph->Replace(whole, "Out", [&] { return layers::Mish(graph->VariableOf(x), threshold); });
}

void TryAt(CompositionGraph* graph, const Op& function) {
  const std::string f = function.Output("Out")[0];
  // If someone else reads it, there is nothing to save.
  if (graph->OnlyReader(f) == nullptr || !HasNumbersOf(function)) return;
  if (function.type == "tanh") TryMish(graph, function);
  std::vector<std::string> operands;
  CollectOperands(*graph, function.Input("X")[0], 0, &operands);
  for (const Activation& activation : Activations()) {
    if (activation.function != function.type) continue;
    for (const std::string& x : operands) {
      const auto argument = Reader(*graph, x, "").Read(function.Input("X")[0]);
      const double tolerance = ToleranceOf(graph->VarOf(x).dtype);
      if (!argument || !AreClose(*argument, activation.argument, tolerance)) continue;
      Op* whole = FindWhole(*graph, x, f, activation.whole);
      if (whole == nullptr) continue;
      return graph->Replace(whole, "Out", [&] { return activation.make(graph->VariableOf(x)); });
    }
  }
}

}  // namespace

void FindActivations(CompositionGraph* graph) {
  for (const Op* op : graph->OpsOf({"erf", "tanh", "sigmoid", "hard_sigmoid", "clip"})) {
    TryAt(graph, *op);
  }
}

}  // namespace skiff
