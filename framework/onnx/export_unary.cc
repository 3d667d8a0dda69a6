// Element-wise ops of one operand.
#include <cmath>
#include <string>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

// The op of the same formula, without attributes.
template <const char* kType>
void Same(OpExport& op) {
  op.Set("Out", op.Node(kType, {op.In("X")}));
}

constexpr char kAbs[] = "Abs";
constexpr char kAcos[] = "Acos";
constexpr char kAsin[] = "Asin";
constexpr char kAtan[] = "Atan";
constexpr char kCeil[] = "Ceil";
constexpr char kCos[] = "Cos";
constexpr char kErf[] = "Erf";
constexpr char kExp[] = "Exp";
constexpr char kFloor[] = "Floor";
constexpr char kIdentity[] = "Identity";
constexpr char kLog[] = "Log";
constexpr char kReciprocal[] = "Reciprocal";
constexpr char kSigmoid[] = "Sigmoid";
constexpr char kSign[] = "Sign";
constexpr char kSin[] = "Sin";
constexpr char kSoftsign[] = "Softsign";
constexpr char kSqrt[] = "Sqrt";
constexpr char kTanh[] = "Tanh";

void Relu(OpExport& op) {
  if (!op.IsFloatIn("X")) op.NeedOpset(14, "Relu of integers");
  op.Set("Out", op.Node("Relu", {op.In("X")}));
}

void Relu6(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  op.Set("Out", op.Node("Clip", {op.In("X"), op.Number(dtype, 0), op.Number(dtype, 6)}));
}

void Rsqrt(OpExport& op) { op.Set("Out", op.Node("Reciprocal", {op.Node("Sqrt", {op.In("X")})})); }

void Square(OpExport& op) {
  const std::string x = op.In("X");
  op.Set("Out", op.Node("Mul", {x, x}));
}

void Swish(OpExport& op) {
  const std::string x = op.In("X");
  op.Set("Out", op.Node("Mul", {x, op.Node("Sigmoid", {x})}));
}

void Elu(OpExport& op) {
  op.Set("Out", op.Node("Elu", {op.In("X")}, {{"alpha", op.Float("alpha")}}));
}

void LeakyRelu(OpExport& op) {
  op.Set("Out", op.Node("LeakyRelu", {op.In("X")}, {{"alpha", op.Float("alpha")}}));
}

void Selu(OpExport& op) {
  op.Set("Out", op.Node("Selu", {op.In("X")},
                        {{"alpha", op.Float("alpha")}, {"gamma", op.Float("scale")}}));
}

void HardSigmoid(OpExport& op) {
  op.Set("Out", op.Node("HardSigmoid", {op.In("X")},
                        {{"alpha", op.Float("slope")}, {"beta", op.Float("offset")}}));
}

// x * (min(max(x + offset, 0), threshold) / scale): divides first, as Skiff does, so that nothing
// overflows.
void HardSwish(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const auto number = [&](const char* name) {
    return op.Number(dtype, static_cast<double>(op.Float(name)));
  };
  const std::string x = op.In("X");
  const std::string shifted = op.Node("Add", {x, number("offset")});
  const std::string clipped = op.Node("Clip", {shifted, op.Number(dtype, 0), number("threshold")});
  op.Set("Out", op.Node("Mul", {x, op.Node("Div", {clipped, number("scale")})}));
}

// Returns whether |x| is below 1, where 1 + x or e^x loses digits of x.
std::string IsSmall(OpExport& op, const std::string& x) {
  return op.Node("Less", {op.Node("Abs", {x}), op.Number(op.DTypeOf("X"), 1)});
}

// Kahan's forms: what the rounding of u = 1 + x (u = e^x) loses, the quotient of the rounded
// numbers gives back.
void Log1p(OpExport& op) {
  const std::string x = op.In("X");
  const std::string one = op.Number(op.DTypeOf("X"), 1);
  const std::string u = op.Node("Add", {x, one});
  const std::string log = op.Node("Log", {u});
  const std::string corrected =
      op.Node("Div", {op.Node("Mul", {log, x}), op.Node("Sub", {u, one})});
  const std::string small = op.Node("Where", {op.Node("Equal", {u, one}), x, corrected});
  op.Set("Out", op.Node("Where", {IsSmall(op, x), small, log}));
}

void Expm1(OpExport& op) {
  const std::string x = op.In("X");
  const std::string one = op.Number(op.DTypeOf("X"), 1);
  const std::string u = op.Node("Exp", {x});
  const std::string less_one = op.Node("Sub", {u, one});
  const std::string corrected =
      op.Node("Div", {op.Node("Mul", {less_one, x}), op.Node("Log", {u})});
  const std::string small = op.Node("Where", {op.Node("Equal", {u, one}), x, corrected});
  op.Set("Out", op.Node("Where", {IsSmall(op, x), small, less_one}));
}

// Halves away from zero; ONNX's Round takes halves to even numbers.
void Round(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string size = op.Node("Abs", {x});
  const std::string floor = op.Node("Floor", {size});
  const std::string rest = op.Node("Sub", {size, floor});
  const std::string rounds_up = op.Node("GreaterOrEqual", {rest, op.Number(dtype, 0.5)});
  const std::string up = op.Node("Add", {floor, op.Number(dtype, 1)});
  const std::string rounded = op.Node("Where", {rounds_up, up, floor});
  op.Set("Out", op.Node("Mul", {rounded, op.Node("Sign", {x})}));
}

void Mish(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string threshold = op.Number(dtype, static_cast<double>(op.Float("threshold")));
  const std::string is_above = op.Node("Greater", {x, threshold});
  const std::string plus = op.Node("Where", {is_above, x, op.Node("Softplus", {x})});
  op.Set("Out", op.Node("Mul", {x, op.Node("Tanh", {plus})}));
}

void Softplus(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string beta = op.Number(dtype, static_cast<double>(op.Float("beta")));
  const std::string threshold = op.Number(dtype, static_cast<double>(op.Float("threshold")));
  const std::string scaled = op.Node("Mul", {x, beta});
  const std::string curve = op.Node("Div", {op.Node("Softplus", {scaled}), beta});
  op.Set("Out", op.Node("Where", {op.Node("Greater", {scaled, threshold}), x, curve}));
}

void Gelu(OpExport& op) {
  op.Set("Out", GeluOf(op, op.In("X"), op.DTypeOf("X"), op.Bool("approximate")));
}

// Truncates the number for integers, as Skiff's kernels do.
std::string NumberFor(OpExport& op, float value) {
  const DType dtype = op.DTypeOf("X");
  const auto wide = static_cast<double>(value);
  return op.Number(dtype, IsFloat(dtype) ? wide : std::trunc(wide));
}

// Returns the one element of an input as a scalar.
std::string ScalarIn(OpExport& op, std::string_view slot) {
  return op.Node("Reshape", {op.In(slot), op.IntVector({})});
}

void Scale(OpExport& op) {
  const float factor_attr = op.Float("scale");
  const float bias = op.Float("bias");
  const bool bias_last = op.Bool("bias_after_scale");
  const std::string factor =
      op.Has("ScaleTensor") ? ScalarIn(op, "ScaleTensor") : NumberFor(op, factor_attr);
  const bool is_scaled = op.Has("ScaleTensor") || factor_attr != 1.0f;
  std::string value = op.In("X");
  if (bias != 0 && !bias_last) value = op.Node("Add", {value, NumberFor(op, bias)});
  if (is_scaled) value = op.Node("Mul", {value, factor});
  if (bias != 0 && bias_last) value = op.Node("Add", {value, NumberFor(op, bias)});
  op.Set("Out", value);
}

void Clip(OpExport& op) {
  const float low = op.Float("min");
  const float high = op.Float("max");
  const auto bound = [&](std::string_view slot, float attr) {
    return op.Has(slot) ? ScalarIn(op, slot) : NumberFor(op, attr);
  };
  const std::string x = op.In("X");
  op.Set("Out", op.Node("Clip", {x, bound("Min", low), bound("Max", high)}));
}

void Pow(OpExport& op) {
  const float factor = op.Float("factor");
  if (!op.IsFloatIn("X")) Refuse("powers of integers wrap around, and not in ONNX");
  const std::string x = op.In("X");
  if (op.Has("FactorTensor")) {
    op.Set("Out", op.Node("Pow", {x, ScalarIn(op, "FactorTensor")}));
  } else {
    op.Set("Out", op.Node("Pow", {x, NumberFor(op, factor)}));
  }
}

void Increment(OpExport& op) {
  op.Set("Out", op.Node("Add", {op.In("X"), NumberFor(op, op.Float("step"))}));
}

constexpr char kIsNan[] = "IsNaN";
constexpr char kIsInf[] = "IsInf";

// ONNX asks it of floats alone: a whole number equals itself, which NaN doesn't.
template <const char* kType>
void Predicate(OpExport& op) {
  const std::string x = op.In("X");
  op.Set("Out",
         op.IsFloatIn("X") ? op.Node(kType, {x}) : op.Node("Not", {op.Node("Equal", {x, x})}));
}

void IsFinite(OpExport& op) {
  const std::string x = op.In("X");
  if (!op.IsFloatIn("X")) return op.Set("Out", op.Node("Equal", {x, x}));
  const std::string is_bad = op.Node("Or", {op.Node("IsNaN", {x}), op.Node("IsInf", {x})});
  op.Set("Out", op.Node("Not", {is_bad}));
}

void BitwiseNot(OpExport& op) {
  const bool is_bool = op.DTypeOf("X") == DType::kBool;
  if (!is_bool) op.NeedOpset(18, "BitwiseNot");
  op.Set("Out", op.Node(is_bool ? "Not" : "BitwiseNot", {op.In("X")}));
}

void Prelu(OpExport& op) {
  const std::string mode = op.Text("mode");
  const int64_t rank = op.Rank("X");
  const bool is_last = op.Text("data_format") == "NHWC";
  std::string alpha = op.In("Alpha");
  if (mode == "all") {
    alpha = op.Node("Reshape", {alpha, op.IntVector({})});
  } else if (mode == "channel") {
    std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
    if (rank > 1) dims[static_cast<size_t>(is_last ? rank - 1 : 1)] = -1;
    alpha = op.Node("Reshape", {alpha, op.IntVector(dims)});
  }
  op.Set("Out", op.Node("PRelu", {op.In("X"), alpha}));
}

void CastOp(OpExport& op) {
  op.Ignore("in_dtype");
  op.Ignore("out_dtype");
  op.Set("Out", op.Cast(op.In("X"), op.OutDType("Out")));
}

void Dropout(OpExport& op) {
  if (!op.Bool("is_test")) Refuse("it draws random numbers, expected is_test = true");
  for (const char* name : {"seed", "fix_seed"}) op.Ignore(name);
  op.Ignore("Seed");
  const double keep = 1.0 - static_cast<double>(op.Float("dropout_prob"));
  const bool scales = op.Text("dropout_implementation") == "downgrade_in_infer";
  const std::string x = op.In("X");
  op.Set("Out", scales ? op.Node("Mul", {x, op.Number(op.DTypeOf("X"), keep)}) : x);
}

void LabelSmooth(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const auto epsilon = static_cast<double>(op.Float("epsilon"));
  const int64_t rank = op.Rank("X");
  const std::string kept = op.Node("Mul", {op.In("X"), op.Number(dtype, 1 - epsilon)});
  if (op.Has("PriorDist")) {
    const std::string prior = op.Node("Reshape", {op.In("PriorDist"), op.IntVector({-1})});
    op.Set("Out", op.Node("Add", {kept, op.Node("Mul", {prior, op.Number(dtype, epsilon)})}));
    return;
  }
  const int64_t classes = rank == 0 ? 1 : op.ShapeOf("X")[static_cast<int>(rank) - 1];
  if (classes <= 0) Refuse("the number of classes is unknown");
  const double share = epsilon / static_cast<double>(classes);
  op.Set("Out", op.Node("Add", {kept, op.Number(dtype, share)}));
}

}  // namespace

void AddUnaryExporters(ExporterTable* table) {
  table->Add("abs", Same<kAbs>);
  table->Add("acos", Same<kAcos>);
  table->Add("asin", Same<kAsin>);
  table->Add("atan", Same<kAtan>);
  table->Add("ceil", Same<kCeil>);
  table->Add("cos", Same<kCos>);
  table->Add("erf", Same<kErf>);
  table->Add("exp", Same<kExp>);
  table->Add("floor", Same<kFloor>);
  table->Add("log", Same<kLog>);
  table->Add("reciprocal", Same<kReciprocal>);
  table->Add("sigmoid", Same<kSigmoid>);
  table->Add("sign", Same<kSign>);
  table->Add("sin", Same<kSin>);
  table->Add("softsign", Same<kSoftsign>);
  table->Add("sqrt", Same<kSqrt>);
  table->Add("tanh", Same<kTanh>);
  table->AddMover("assign", Same<kIdentity>);
  table->Add("relu", Relu);
  table->Add("relu6", Relu6);
  table->Add("rsqrt", Rsqrt);
  table->Add("square", Square);
  table->Add("swish", Swish);
  table->Add("elu", Elu);
  table->Add("leaky_relu", LeakyRelu);
  table->Add("selu", Selu);
  table->Add("hard_sigmoid", HardSigmoid);
  table->Add("hard_swish", HardSwish);
  table->Add("log1p", Log1p);
  table->Add("expm1", Expm1);
  table->Add("round", Round);
  table->Add("mish", Mish);
  table->Add("softplus", Softplus);
  table->Add("gelu", Gelu);
  table->Add("scale", Scale);
  table->Add("clip", Clip);
  table->Add("pow", Pow);
  table->Add("increment", Increment);
  table->Add("isnan_v2", Predicate<kIsNan>);
  table->Add("isinf_v2", Predicate<kIsInf>);
  table->Add("isfinite_v2", IsFinite);
  table->Add("bitwise_not", BitwiseNot);
  table->Add("prelu", Prelu);
  table->AddMover("cast", CastOp);
  table->Add("dropout", Dropout);
  table->Add("label_smooth", LabelSmooth);
}

}  // namespace skiff::onnx_export
