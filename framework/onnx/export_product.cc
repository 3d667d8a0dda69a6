// Products of matrices.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/op/einsum_equation.h"

namespace skiff::onnx_export {
namespace {

// Returns the value with its last two dims swapped.
std::string SwappedMatrices(OpExport& op, const std::string& value, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return Transposed(op, value, axes);
}

void Scaled(OpExport& op, const std::string& product, float alpha) {
  const std::string factor = op.Number(op.DTypeOf("X"), static_cast<double>(alpha));
  op.Set("Out", alpha == 1.0f ? product : op.Node("Mul", {product, factor}));
}

void MatmulV2(OpExport& op) {
  // A vector isn't transposed.
  const bool trans_x = op.Bool("trans_x") && op.Rank("X") > 1;
  const bool trans_y = op.Bool("trans_y") && op.Rank("Y") > 1;
  std::string x = op.In("X");
  std::string y = op.In("Y");
  if (trans_x) x = SwappedMatrices(op, x, op.Rank("X"));
  if (trans_y) y = SwappedMatrices(op, y, op.Rank("Y"));
  op.Set("Out", op.Node("MatMul", {x, y}));
}

void Matmul(OpExport& op) {
  op.Ignore("head_number");
  const float alpha = op.Float("alpha");
  const int64_t x_rank = op.Rank("X");
  const int64_t y_rank = op.Rank("Y");
  const bool trans_x = op.Bool("transpose_X");
  const bool trans_y = op.Bool("transpose_Y");
  if ((x_rank == 1 && trans_x) || (y_rank == 1 && trans_y)) Refuse("a vector is transposed");
  // The dims before are one batch here, and broadcast in ONNX.
  if (x_rank > 2 && y_rank > 2 && x_rank != y_rank) Refuse("X and Y have batches of other ranks");
  std::string x = op.In("X");
  std::string y = op.In("Y");
  if (trans_x) x = SwappedMatrices(op, x, x_rank);
  if (trans_y) y = SwappedMatrices(op, y, y_rank);
  Scaled(op, op.Node("MatMul", {x, y}), alpha);
}

void Bmm(OpExport& op) { op.Set("Out", op.Node("MatMul", {op.In("X"), op.In("Y")})); }

void Addmm(OpExport& op) {
  const auto factor = [&](const char* name, const std::string& value) {
    const float number = op.Float(name);
    return number == 1.0f
               ? value
               : op.Node("Mul", {value, op.Number(op.DTypeOf("X"), static_cast<double>(number))});
  };
  const std::string product = op.Node("MatMul", {op.In("X"), op.In("Y")});
  const std::string scaled = factor("Alpha", product);
  // A factor of 0 reads nothing, not even NaN.
  if (op.Float("Beta") == 0) {
    op.Ignore("Input");
    return op.Set("Out", scaled);
  }
  op.Set("Out", op.Node("Add", {factor("Beta", op.In("Input")), scaled}));
}

// Returns the product of X as a matrix, whose rows are the first `row_dims` dims, and a matrix
// [k, n]; its dims are those of X's rows, then n.
std::string RowsTimes(OpExport& op, const std::string& x, int64_t row_dims,
                      const std::string& matrix) {
  const Shape& shape = op.ShapeOf("X");
  // ONNX's product treats the last dim of X as k, whatever is before it.
  if (shape.rank() == row_dims + 1) return op.Node("MatMul", {x, matrix});
  const std::string rows = op.Node("Flatten", {x}, {{"axis", row_dims}});
  const std::string product = op.Node("MatMul", {rows, matrix});
  if (row_dims == 1) return product;
  const std::string dims = Joined(op, {DimsOf(op, x, 0, row_dims), op.IntVector({-1})});
  return op.Node("Reshape", {product, dims});
}

void Mul(OpExport& op) {
  const int64_t x_dims = op.Int("x_num_col_dims");
  const int64_t y_dims = op.Int("y_num_col_dims");
  const int64_t y_rank = op.Rank("Y");
  const std::string y = op.In("Y");
  const bool is_matrix = y_rank == 2 && y_dims == 1;
  const std::string matrix = is_matrix ? y : op.Node("Flatten", {y}, {{"axis", y_dims}});
  const std::string x = op.In("X");
  const std::string product = RowsTimes(op, x, x_dims, matrix);
  if (y_rank == y_dims + 1) return op.Set("Out", product);
  const std::string dims = Joined(op, {DimsOf(op, x, 0, x_dims), DimsOf(op, y, y_dims, y_rank)});
  op.Set("Out", op.Node("Reshape", {product, dims}));
}

void Linear(OpExport& op) {
  const int64_t x_dims = op.Int("x_num_col_dims");
  const bool trans_y = op.Bool("trans_y");
  const std::string y = op.In("Y");
  const std::string matrix = trans_y ? Transposed(op, y, {1, 0}) : y;
  const std::string product = RowsTimes(op, op.In("X"), x_dims, matrix);
  op.Set("Out", op.Node("Add", {product, op.In("Bias")}));
}

// Returns the equation, with letters in place of the digits of "...".
std::string EquationOf(const EinsumTerms& terms) {
  std::string equation = StrCat(Join(terms.operands, ","), "->", terms.result);
  char letter = 'a';
  for (char digit = '1'; digit <= '9'; ++digit) {
    while (equation.find(letter) != std::string::npos)
      letter = letter == 'z' ? 'A' : static_cast<char>(letter + 1);
    std::ranges::replace(equation, digit, letter);
  }
  return equation;
}

// Returns the letters of axes that may be longer than 1.
std::string LettersOfLongAxes(const EinsumTerms& terms, const std::vector<Shape>& shapes) {
  std::string letters;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int axis = 0; axis < shapes[i].rank(); ++axis) {
      if (shapes[i][axis] != 1) letters += terms.operands[i][static_cast<size_t>(axis)];
    }
  }
  return letters;
}

// ONNX's Einsum repeats no axis of extent 1, and sums over no axes of "...". So such axes are taken
// away, and "..." is spelled out.
void Einsum(OpExport& op) {
  std::vector<std::string> operands = op.Ins("Operands");
  std::vector<Shape> shapes;
  for (size_t i = 0; i < operands.size(); ++i) shapes.push_back(op.ShapeOf("Operands", i));
  EinsumTerms terms = ParseEinsum(op.Text("equation"), shapes);
  const std::string longer = LettersOfLongAxes(terms, shapes);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string& term = terms.operands[i];
    std::vector<int64_t> repeated;
    for (int axis = shapes[i].rank() - 1; axis >= 0; --axis) {
      const auto place = static_cast<size_t>(axis);
      if (shapes[i][axis] != 1 || longer.find(term[place]) == std::string::npos) continue;
      repeated.push_back(axis);
      term.erase(place, 1);
    }
    if (!repeated.empty()) operands[i] = Squeezed(op, operands[i], repeated);
  }
  op.Set("Out", op.Node("Einsum", operands, {{"equation", EquationOf(terms)}}));
}

}  // namespace

void AddProductExporters(ExporterTable* table) {
  table->Add("matmul", Matmul);
  table->Add("matmul_v2", MatmulV2);
  table->Add("bmm", Bmm);
  table->Add("addmm", Addmm);
  table->Add("mul", Mul);
  table->Add("linear", Linear);
  table->Add("einsum", Einsum);
}

}  // namespace skiff::onnx_export
