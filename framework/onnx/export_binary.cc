// Element-wise ops of two operands or more, which broadcast.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

bool MayBeEqual(const Shape& x, const Shape& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

// Gives the operand of lower rank, whose dims are those of the other one from `axis` on, the dims
// of 1 behind them that ONNX's broadcasting needs.
std::string Aligned(OpExport& op, const std::string& value, int64_t rank, int64_t large,
                    int64_t axis) {
  const int64_t start = axis < 0 ? large - rank + axis + 1 : axis;
  const int64_t behind = large - start - rank;
  std::vector<int64_t> axes(static_cast<size_t>(std::abs(behind)));
  // Below 0: trailing dims of 1 that extend beyond the other operand, which Fluid drops.
  std::iota(axes.begin(), axes.end(), behind < 0 ? rank + behind : rank);
  return behind < 0 ? Squeezed(op, value, axes) : Unsqueezed(op, value, axes);
}

// Returns X and Y so that ONNX broadcasts them as Skiff does.
std::pair<std::string, std::string> Operands(OpExport& op) {
  const int64_t axis = op.Defines("axis") ? op.Int("axis") : -1;
  std::string x = op.In("X");
  std::string y = op.In("Y");
  if (MayBeEqual(op.ShapeOf("X"), op.ShapeOf("Y"))) return {x, y};
  const int64_t x_rank = op.Rank("X");
  const int64_t y_rank = op.Rank("Y");
  if (x_rank >= y_rank) {
    y = Aligned(op, y, y_rank, x_rank, axis);
  } else {
    x = Aligned(op, x, x_rank, y_rank, axis);
  }
  return {x, y};
}

template <const char* kType>
void Arithmetic(OpExport& op) {
  const auto [x, y] = Operands(op);
  op.Set("Out", op.Node(kType, {x, y}));
}

constexpr char kAdd[] = "Add";
constexpr char kSub[] = "Sub";
constexpr char kMul[] = "Mul";
constexpr char kDiv[] = "Div";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kEqual[] = "Equal";
constexpr char kLess[] = "Less";
constexpr char kLessOrEqual[] = "LessOrEqual";
constexpr char kGreater[] = "Greater";
constexpr char kGreaterOrEqual[] = "GreaterOrEqual";
constexpr char kAnd[] = "And";
constexpr char kOr[] = "Or";
constexpr char kXor[] = "Xor";

// ONNX orders no bools.
template <const char* kType>
void Comparison(OpExport& op) {
  auto [x, y] = Operands(op);
  const bool is_order = std::string_view(kType) != "Equal";
  if (is_order && op.DTypeOf("X") == DType::kBool) {
    x = op.Cast(x, DType::kInt32);
    y = op.Cast(y, DType::kInt32);
  }
  op.Set("Out", op.Node(kType, {x, y}));
}

void NotEqual(OpExport& op) {
  const auto [x, y] = Operands(op);
  op.Set("Out", op.Node("Not", {op.Node("Equal", {x, y})}));
}

std::string AsBool(OpExport& op, const std::string& value, DType dtype) {
  return dtype == DType::kBool ? value : op.Cast(value, DType::kBool);
}

template <const char* kType>
void Logical(OpExport& op) {
  const auto [x, y] = Operands(op);
  const DType dtype = op.DTypeOf("X");
  op.Set("Out", op.Node(kType, {AsBool(op, x, dtype), AsBool(op, y, dtype)}));
}

// Of bools, kType; of whole numbers, its operator on bits.
template <const char* kType>
void Bitwise(OpExport& op) {
  const auto [x, y] = Operands(op);
  if (op.DTypeOf("X") == DType::kBool) return op.Set("Out", op.Node(kType, {x, y}));
  op.NeedOpset(18, "operators on bits");
  op.Set("Out", op.Node(StrCat("Bitwise", kType), {x, y}));
}

void LogicalNot(OpExport& op) {
  op.Set("Out", op.Node("Not", {AsBool(op, op.In("X"), op.DTypeOf("X"))}));
}

void Pow(OpExport& op) {
  if (!op.IsFloatIn("X")) Refuse("powers of integers are rounded, and not in ONNX");
  const auto [x, y] = Operands(op);
  op.Set("Out", op.Node("Pow", {x, y}));
}

// The remainder that has the sign of y. ONNX has it for integers; for floats, fmod has the sign
// of x.
std::string FloorRest(OpExport& op, const std::string& x, const std::string& y, DType dtype) {
  if (!IsFloat(dtype)) return op.Node("Mod", {x, y});
  const std::string zero = op.Number(dtype, 0);
  const std::string rest = op.Node("Mod", {x, y}, {{"fmod", int64_t{1}}});
  const std::string is_other_sign =
      op.Node("Xor", {op.Node("Less", {rest, zero}), op.Node("Less", {y, zero})});
  const std::string is_some = op.Node("Not", {op.Node("Equal", {rest, zero})});
  const std::string shifts = op.Node("And", {is_some, is_other_sign});
  return op.Node("Where", {shifts, op.Node("Add", {rest, y}), rest});
}

void Mod(OpExport& op) {
  const auto [x, y] = Operands(op);
  op.Set("Out", FloorRest(op, x, y, op.DTypeOf("X")));
}

void FloorDiv(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const auto [x, y] = Operands(op);
  const std::string whole = op.Node("Sub", {x, FloorRest(op, x, y, dtype)});
  const std::string quotient = op.Node("Div", {whole, y});
  if (!IsFloat(dtype)) return op.Set("Out", quotient);
  // Whole, except for rounding errors.
  const std::string rounded = op.Node("Round", {quotient});
  const std::string is_zero = op.Node("Equal", {y, op.Number(dtype, 0)});
  op.Set("Out", op.Node("Where", {is_zero, op.Node("Div", {x, y}), rounded}));
}

void SumOp(OpExport& op) {
  if (op.Bool("wide_float32")) Refuse("wide_float32 = true");
  std::string sum = op.In("X", 0);
  for (size_t i = 1; i < op.InputCount("X"); ++i) sum = op.Node("Add", {sum, op.In("X", i)});
  op.Set("Out", sum);
}

void Where(OpExport& op) {
  op.Set("Out", op.Node("Where", {op.In("Condition"), op.In("X"), op.In("Y")}));
}

}  // namespace

void AddBinaryExporters(ExporterTable* table) {
  table->Add("elementwise_add", Arithmetic<kAdd>);
  table->Add("elementwise_sub", Arithmetic<kSub>);
  table->Add("elementwise_mul", Arithmetic<kMul>);
  table->Add("elementwise_div", Arithmetic<kDiv>);
  table->Add("elementwise_max", Arithmetic<kMax>);
  table->Add("elementwise_min", Arithmetic<kMin>);
  table->Add("elementwise_pow", Pow);
  table->Add("elementwise_mod", Mod);
  table->Add("elementwise_floordiv", FloorDiv);
  table->Add("equal", Comparison<kEqual>);
  table->Add("not_equal", NotEqual);
  table->Add("less_than", Comparison<kLess>);
  table->Add("less_equal", Comparison<kLessOrEqual>);
  table->Add("greater_than", Comparison<kGreater>);
  table->Add("greater_equal", Comparison<kGreaterOrEqual>);
  table->Add("bitwise_and", Bitwise<kAnd>);
  table->Add("bitwise_or", Bitwise<kOr>);
  table->Add("bitwise_xor", Bitwise<kXor>);
  table->Add("logical_and", Logical<kAnd>);
  table->Add("logical_or", Logical<kOr>);
  table->Add("logical_xor", Logical<kXor>);
  table->Add("logical_not", LogicalNot);
  table->Add("sum", SumOp);
  table->AddMover("where", Where);
}

}  // namespace skiff::onnx_export
