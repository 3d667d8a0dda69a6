// Ops that work element by element.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

// There are no kernels for whole numbers of 8 and 16 bits: these are computed in 32, whose lower
// bits are the same.
bool IsNarrow(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt16;
}
Variable Wide(const Variable& x) {
  return IsNarrow(x.dtype()) ? layers::Cast(x, DType::kInt32) : x;
}
Variable Back(const Variable& x, DType dtype) {
  return x.dtype() == dtype ? x : layers::Cast(x, dtype);
}

Variable FloatInput(const OnnxNode& node, size_t i) {
  Variable x = node.In(i);
  if (!IsFloat(x.dtype())) node.Unsupported("input ", i, " is of ", x.dtype(), ", expected floats");
  return x;
}

template <Variable (*Function)(const Variable&, layers::Site)>
void Unary(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  node.Out(0, Function(FloatInput(node, 0), layers::Site::current()));
}

// Of floats and of whole numbers.
template <Variable (*Function)(const Variable&, layers::Site)>
void UnaryNumber(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  node.Out(0, Back(Function(Wide(x), layers::Site::current()), x.dtype()));
}

Variable NegOf(const Variable& x, layers::Site) { return -x; }
Variable TanOf(const Variable& x, layers::Site) { return layers::Sin(x) / layers::Cos(x); }
// Near the largest numbers e^x overflows and its half doesn't. So the hyperbolic functions are
// products of two factors, each of its own half of x: the gradients are finite where the results
// are.
Variable SinhOf(const Variable& x, layers::Site) {
  const Variable a = x * 0.5;
  const Variable b = x * 0.5;
  return (layers::Expm1(a) - layers::Expm1(-a)) * 0.5 * (layers::Exp(b) + layers::Exp(-b));
}
Variable HalfExp(const Variable& x) { return layers::Exp(x * 0.5) * 0.5 * layers::Exp(x * 0.5); }
Variable CoshOf(const Variable& x, layers::Site) { return HalfExp(x) + HalfExp(-x); }

// Returns function(x), or log(2x) where x is so large that this is the same, and x² may overflow.
// Both get harmless numbers for the elements of the other, so that gradients stay finite.
template <typename Function>
Variable OrLogOfTwice(const Variable& x, const Function& function) {
  const double limit = x.dtype() == DType::kFloat64 ? 1e9 : IsHalf(x.dtype()) ? 100 : 1e4;
  const Variable is_large = x > limit;
  const Variable large = layers::Log(layers::Where(is_large, x, limit)) + std::numbers::ln2;
  return layers::Where(is_large, large, function(layers::Where(is_large, 2.0, x)));
}
Variable AsinhOf(const Variable& x, layers::Site) {
  const Variable is_negative = x < 0.0;
  const auto signed_as_x = [&](const Variable& y) { return layers::Where(is_negative, -y, y); };
  return signed_as_x(OrLogOfTwice(signed_as_x(x), [](const Variable& size) {
    const Variable square = layers::Square(size);
    return layers::Log1p(size + square / (layers::Sqrt(square + 1.0) + 1.0));
  }));
}
Variable AcoshOf(const Variable& x, layers::Site) {
  return OrLogOfTwice(x, [](const Variable& number) {
    const Variable above = number - 1.0;
    return layers::Log1p(above + layers::Sqrt(above * (number + 1.0)));
  });
}
Variable AtanhOf(const Variable& x, layers::Site) {
  return (layers::Log1p(x) - layers::Log1p(-x)) * 0.5;
}
// Halves go to the even number; Skiff's round moves them away from 0.
Variable RoundOf(const Variable& x, layers::Site) {
  const Variable down = layers::Floor(x);
  const Variable rest = x - down;
  const Variable is_odd = down - layers::Floor(down * 0.5) * 2.0;  // 0 or 1
  const Variable nearest = layers::Where(rest > 0.5, down + 1.0, down);
  return layers::Where(layers::Equal(rest, 0.5), down + is_odd, nearest);
}

using Binary = Variable (*)(const Variable&, const Variable&, const layers::ElementwiseOptions&,
                            layers::Site);

Variable Combine(Binary function, const OnnxNode& node, const Variable& x, const Variable& y) {
  if (x.dtype() != y.dtype()) {
    node.Invalid("the operands are of ", x.dtype(), " and ", y.dtype(), ", expected one dtype");
  }
  if (x.dtype() == DType::kBool) node.Unsupported("the operands are bools");
  return Back(function(Wide(x), Wide(y), {}, layers::Site::current()), x.dtype());
}

template <Binary Function>
void Arithmetic(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  node.Out(0, Combine(Function, node, node.In(0), node.In(1)));
}
// The operand of fewer dims comes second: the passes look for a bias there.
template <Binary Function>
void Commutative(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const bool swaps = RankOf(node.In(0)) < RankOf(node.In(1));
  node.Out(0, Combine(Function, node, node.In(swaps ? 1 : 0), node.In(swaps ? 0 : 1)));
}

// The products of dims of which some are known only in a run, and of other numbers.
std::optional<PartlyKnownDims> PartlyKnownProducts(const OnnxNode& node) {
  auto x = node.KnownDims(0);
  const auto y = node.KnownDims(1);
  if (!x || !y || x->size() != y->size()) return std::nullopt;
  for (size_t i = 0; i < x->size(); ++i) {
    int64_t& dim = (*x)[i];
    if (dim < 0 || (*y)[i] < 0 || __builtin_mul_overflow(dim, (*y)[i], &dim)) dim = -1;
  }
  return x;
}
void Multiply(const OnnxNode& node) {
  Commutative<layers::ElementwiseMul>(node);
  node.OutKnownDims(0, PartlyKnownProducts(node));
}

template <Binary Function>
Variable CombineAll(const OnnxNode& node) {
  node.CheckInputs(1, node.input_count());
  Variable all = node.In(0);
  for (size_t i = 1; i < node.input_count(); ++i) all = Combine(Function, node, all, node.In(i));
  return all;
}
template <Binary Function>
void Variadic(const OnnxNode& node) {
  if (node.input_count() == 1) return node.OutSame(0, 0);
  node.Out(0, CombineAll<Function>(node));
}
void MeanOf(const OnnxNode& node) {
  if (node.input_count() == 1) return node.OutSame(0, 0);
  const auto count = static_cast<double>(node.input_count());
  node.Out(0, CombineAll<layers::ElementwiseAdd>(node) * (1.0 / count));
}

Variable EmitBinary(const OnnxNode& node, const char* type, const Variable& x, const Variable& y) {
  if (x.dtype() != y.dtype()) {
    node.Invalid("the operands are of ", x.dtype(), " and ", y.dtype(), ", expected one dtype");
  }
  Op op(type);
  op.SetInput("X", {x.name()}).SetInput("Y", {y.name()});
  return node.Emit(std::move(op));
}

void Compare(const OnnxNode& node, const char* type) {
  node.CheckInputs(2, 2);
  node.Out(0, EmitBinary(node, type, Wide(node.In(0)), Wide(node.In(1))));
}
void Equal(const OnnxNode& node) { Compare(node, "equal"); }
void Less(const OnnxNode& node) { Compare(node, "less_than"); }
void LessOrEqual(const OnnxNode& node) { Compare(node, "less_equal"); }
void Greater(const OnnxNode& node) { Compare(node, "greater_than"); }
void GreaterOrEqual(const OnnxNode& node) { Compare(node, "greater_equal"); }

void Logical(const OnnxNode& node, const char* type) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  if (x.dtype() != DType::kBool) node.Invalid("an operand is of ", x.dtype(), ", expected bools");
  node.Out(0, EmitBinary(node, type, x, node.In(1)));
}
void And(const OnnxNode& node) { Logical(node, "logical_and"); }
void Or(const OnnxNode& node) { Logical(node, "logical_or"); }
void Xor(const OnnxNode& node) { Logical(node, "logical_xor"); }
void Not(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  Op op("logical_not");
  op.SetInput("X", {node.In(0).name()});
  node.Out(0, node.Emit(std::move(op)));
}

template <Variable (*Function)(const Variable&, const Variable&, layers::Site)>
void Bitwise(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const Variable y = node.In(1);
  if (x.dtype() != y.dtype() || IsFloat(x.dtype())) {
    node.Invalid("the operands are of ", x.dtype(), " and ", y.dtype(),
                 ", expected one dtype of whole numbers");
  }
  node.Out(0, Back(Function(Wide(x), Wide(y), layers::Site::current()), x.dtype()));
}
void BitwiseNot(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  if (IsFloat(x.dtype())) node.Invalid("input 0 is of ", x.dtype(), ", expected whole numbers");
  node.Out(0, Back(layers::BitwiseNot(Wide(x)), x.dtype()));
}

void IsInf(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = FloatInput(node, 0);
  const bool positive = node.Int("detect_positive", 1) != 0;
  const bool negative = node.Int("detect_negative", 1) != 0;
  const Variable is_infinite = layers::IsInf(x);
  if (positive && negative) return node.Out(0, is_infinite);
  if (!positive && !negative) return node.Out(0, layers::FullLike(x, 0.0, DType::kBool));
  const Variable is_wanted = positive ? layers::GreaterThan(x, 0.0) : layers::LessThan(x, 0.0);
  node.Out(0, layers::LogicalAnd(is_infinite, is_wanted));
}

void Where(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const Variable x = node.In(1);
  node.Out(0, Back(layers::Where(node.In(0), Wide(x), Wide(node.In(2))), x.dtype()));
}

void Pow(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const Tensor* exponent = node.Known(1);
  if (exponent != nullptr && exponent->shape().rank() == 0 && IsFloat(x.dtype())) {
    return node.Out(0, layers::Pow(x, static_cast<float>(node.Number(1, 1.0))));
  }
  const Variable y = node.In(1);
  // The base has the result's dtype, but is raised in floats if the exponent is one.
  const bool in_floats = !IsFloat(x.dtype()) && IsFloat(y.dtype());
  const DType dtype = in_floats ? DType::kFloat64 : x.dtype();
  const DType computed = IsNarrow(dtype) ? DType::kInt32 : dtype;
  const Variable power = layers::ElementwisePow(Back(x, computed), Back(y, computed));
  node.Out(0, Back(power, x.dtype()));
}

void Mod(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const Variable y = node.In(1);
  if (node.Int("fmod", 0) == 0) {
    if (IsFloat(x.dtype())) node.Invalid("has fmod = 0 for floats");
    return node.Out(0, Combine(layers::ElementwiseMod, node, x, y));
  }
  // The remainder has the sign of x.
  const Variable a = Wide(x);
  const Variable size = layers::ElementwiseMod(layers::Abs(a), layers::Abs(Wide(y)));
  node.Out(0, Back(size * layers::Sign(a), x.dtype()));
}

void Clip(const OnnxNode& node) {
  Variable x = node.In(0);
  const DType dtype = x.dtype();
  if (node.opset() < 11) {
    const float most = std::numeric_limits<float>::max();
    return node.Out(0, layers::Clip(x, node.Float("min", -most), node.Float("max", most)));
  }
  node.CheckInputs(1, 3);
  const bool both = node.Has(1) && node.Has(2) && node.Known(1) != nullptr &&
                    node.Known(2) != nullptr && dtype == DType::kFloat32;
  if (both && node.Number(1, 0) <= node.Number(2, 0)) {
    return node.Out(0, layers::Clip(x, static_cast<float>(node.Number(1, 0)),
                                    static_cast<float>(node.Number(2, 0))));
  }
  if (!node.Has(1) && !node.Has(2)) return node.OutSame(0, 0);
  if (node.Has(1)) x = Combine(layers::ElementwiseMax, node, x, node.In(1));
  if (node.Has(2)) x = Combine(layers::ElementwiseMin, node, x, node.In(2));
  node.Out(0, x);
}

void CastTo(const OnnxNode& node, DType dtype) {
  const Variable x = node.In(0);
  if (x.dtype() == dtype) return node.OutSame(0, 0);
  node.Out(0, layers::Cast(x, dtype));
  if (dtype == DType::kInt64 || dtype == DType::kInt32) {
    node.OutKnownDims(0, node.KnownDims(0));
  }
}
void Cast(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  CastTo(node, node.DTypeOfOnnx(node.Int("to", 0)));
}
void CastLike(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  CastTo(node, node.In(1).dtype());
}

void LeakyRelu(const OnnxNode& node) {
  node.Out(0, layers::LeakyRelu(FloatInput(node, 0), node.Float("alpha", 0.01f)));
}
void Elu(const OnnxNode& node) {
  node.Out(0, layers::Elu(FloatInput(node, 0), node.Float("alpha", 1.0f)));
}
void Celu(const OnnxNode& node) {
  const Variable x = FloatInput(node, 0);
  const double alpha = node.Float("alpha", 1.0f);
  const Variable below = layers::Expm1(layers::ElementwiseMin(x, 0.0) * (1.0 / alpha)) * alpha;
  node.Out(0, layers::Relu(x) + below);
}
void Selu(const OnnxNode& node) {
  node.Out(0,
           layers::Selu(FloatInput(node, 0), {.scale = node.Float("gamma", 1.05070102214813232f),
                                              .alpha = node.Float("alpha", 1.67326319217681885f)}));
}
void HardSigmoid(const OnnxNode& node) {
  node.Out(0, layers::HardSigmoid(FloatInput(node, 0), node.Float("alpha", 0.2f),
                                  node.Float("beta", 0.5f)));
}
void HardSwish(const OnnxNode& node) { node.Out(0, layers::HardSwish(FloatInput(node, 0))); }
void Mish(const OnnxNode& node) { node.Out(0, layers::Mish(FloatInput(node, 0))); }
void Softplus(const OnnxNode& node) { node.Out(0, layers::Softplus(FloatInput(node, 0))); }
void Swish(const OnnxNode& node) {
  const Variable x = FloatInput(node, 0);
  const float alpha = node.Float("alpha", 1.0f);
  node.Out(0, alpha == 1.0f ? layers::Swish(x) : x * layers::Sigmoid(x * double{alpha}));
}
void Gelu(const OnnxNode& node) {
  const std::string approximate = node.String("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    node.Unsupported("approximate = \"", approximate, "\"");
  }
  node.Out(0, layers::Gelu(FloatInput(node, 0), approximate == "tanh"));
}
void ThresholdedRelu(const OnnxNode& node) {
  const Variable x = FloatInput(node, 0);
  node.Out(0, layers::Where(x > double{node.Float("alpha", 1.0f)}, x, 0.0));
}
void Shrink(const OnnxNode& node) {
  const Variable x = FloatInput(node, 0);
  const double bias = node.Float("bias", 0.0f);
  const double lambda = node.Float("lambd", 0.5f);
  const Variable above = layers::Where(x > lambda, x - bias, 0.0);
  node.Out(0, layers::Where(x < -lambda, x + bias, above));
}
void PRelu(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const Variable slope = node.In(1);
  if (!IsFloat(x.dtype())) node.Unsupported("input 0 is of ", x.dtype(), ", expected floats");
  node.Out(0, layers::Relu(x) + layers::ElementwiseMin(x, 0.0) * slope);
}

void Identity(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  node.OutSame(0, 0);
}

void Dropout(const OnnxNode& node) {
  const Tensor* training = node.opset() >= 12 && node.Has(2) ? node.Known(2) : nullptr;
  const bool is_known = node.opset() < 12 || !node.Has(2) ||
                        (training != nullptr && training->dtype() == DType::kBool);
  const bool trains = training != nullptr && is_known && training->Item<bool>();
  if (!is_known || (trains && node.Number(1, 0.5) != 0.0)) {
    node.Unsupported("drops elements at random");
  }
  node.OutSame(0, 0);
  if (node.Wants(1)) node.Out(1, layers::FullLike(node.In(0), 1.0, DType::kBool));
}

}  // namespace

std::vector<OnnxConverterEntry> ElementwiseConverters() {
  return {
      {"Abs", UnaryNumber<layers::Abs>},
      {"Acos", Unary<layers::Acos>},
      {"Acosh", Unary<AcoshOf>},
      {"Add", Commutative<layers::ElementwiseAdd>},
      {"And", And},
      {"Asin", Unary<layers::Asin>},
      {"Asinh", Unary<AsinhOf>},
      {"Atan", Unary<layers::Atan>},
      {"Atanh", Unary<AtanhOf>},
      {"BitwiseAnd", Bitwise<layers::BitwiseAnd>},
      {"BitwiseNot", BitwiseNot},
      {"BitwiseOr", Bitwise<layers::BitwiseOr>},
      {"BitwiseXor", Bitwise<layers::BitwiseXor>},
      {"Cast", Cast},
      {"CastLike", CastLike},
      {"Ceil", Unary<layers::Ceil>},
      {"Celu", Celu},
      {"Clip", Clip},
      {"Cos", Unary<layers::Cos>},
      {"Cosh", Unary<CoshOf>},
      {"Div", Arithmetic<layers::ElementwiseDiv>},
      {"Dropout", Dropout},
      {"Elu", Elu},
      {"Equal", Equal},
      {"Erf", Unary<layers::Erf>},
      {"Exp", Unary<layers::Exp>},
      {"Floor", Unary<layers::Floor>},
      {"Gelu", Gelu},
      {"Greater", Greater},
      {"GreaterOrEqual", GreaterOrEqual},
      {"HardSigmoid", HardSigmoid},
      {"HardSwish", HardSwish},
      {"Identity", Identity},
      {"IsInf", IsInf},
      {"IsNaN", Unary<layers::IsNan>},
      {"LeakyRelu", LeakyRelu},
      {"Less", Less},
      {"LessOrEqual", LessOrEqual},
      {"Log", Unary<layers::Log>},
      {"Max", Variadic<layers::ElementwiseMax>},
      {"Mean", MeanOf},
      {"Min", Variadic<layers::ElementwiseMin>},
      {"Mish", Mish},
      {"Mod", Mod},
      {"Mul", Multiply},
      {"Neg", UnaryNumber<NegOf>},
      {"Not", Not},
      {"Or", Or},
      {"PRelu", PRelu},
      {"Pow", Pow},
      {"Reciprocal", Unary<layers::Reciprocal>},
      {"Relu", UnaryNumber<layers::Relu>},
      {"Round", Unary<RoundOf>},
      {"Selu", Selu},
      {"Shrink", Shrink},
      {"Sigmoid", Unary<layers::Sigmoid>},
      {"Sign", UnaryNumber<layers::Sign>},
      {"Sin", Unary<layers::Sin>},
      {"Sinh", Unary<SinhOf>},
      {"Softplus", Softplus},
      {"Softsign", Unary<layers::Softsign>},
      {"Sqrt", Unary<layers::Sqrt>},
      {"Sub", Arithmetic<layers::ElementwiseSub>},
      {"Sum", Variadic<layers::ElementwiseAdd>},
      {"Swish", Swish},
      {"Tan", Unary<TanOf>},
      {"Tanh", Unary<layers::Tanh>},
      {"ThresholdedRelu", ThresholdedRelu},
      {"Where", Where},
      {"Xor", Xor},
  };
}

}  // namespace skiff
