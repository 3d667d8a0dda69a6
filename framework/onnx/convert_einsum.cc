// Einsum, as transpositions and one product of matrices.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "framework/builder/math.h"
#include "framework/builder/tensor.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// A tensor whose axes have letters.
struct Lettered {
  Variable x;
  std::string letters;
};

bool Has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// Replaces "..." by capitals that nobody else uses: those of the last axes are the same for all.
std::string WithoutEllipsis(const OnnxNode& node, std::string term, size_t axes) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  const size_t named = term.size() - 3;
  if (named > axes) node.Invalid("a term has more letters than its operand has axes");
  std::string letters;
  for (size_t i = axes - named; i > 0; --i) letters += static_cast<char>('0' + i);
  return term.replace(dots, 3, letters);
}

// Sums over the axes whose letters aren't wanted.
Lettered Summed(const Lettered& operand, const std::string& wanted) {
  layers::ReduceOptions options;
  Lettered left = operand;
  left.letters.clear();
  for (size_t i = 0; i < operand.letters.size(); ++i) {
    if (Has(wanted, operand.letters[i])) {
      left.letters += operand.letters[i];
    } else {
      options.dims.push_back(static_cast<int64_t>(i));
    }
  }
  if (!options.dims.empty()) left.x = layers::ReduceSum(operand.x, options);
  return left;
}

Variable Ordered(const Lettered& operand, const std::string& letters) {
  if (operand.letters == letters) return operand.x;
  Ints permutation;
  for (const char letter : letters) {
    permutation.push_back(static_cast<int64_t>(operand.letters.find(letter)));
  }
  return layers::Transpose(operand.x, permutation);
}

int64_t Extent(const Lettered& operand, char letter) {
  return operand.x.dims()[operand.letters.find(letter)];
}

// The two factors of a product of matrices as Skiff takes them.
struct Product {
  std::string batch, left, inner, right;
};

Product ProductOf(const Lettered& a, const Lettered& b, const std::string& result) {
  Product product;
  for (const char letter : a.letters) {
    const bool in_both = Has(b.letters, letter);
    (in_both ? Has(result, letter) ? product.batch : product.inner : product.left) += letter;
  }
  for (const char letter : b.letters) {
    if (!Has(a.letters, letter)) product.right += letter;
  }
  return product;
}

// x [batch…, rows…, columns…] with one axis of rows and one of columns.
Variable AsMatrices(const OnnxNode& node, const Lettered& operand, const std::string& batch,
                    const std::string& rows, const std::string& columns) {
  const Variable x = Ordered(operand, batch + rows + columns);
  if (rows.size() == 1 && columns.size() == 1) return x;
  Ints dims;
  for (const char letter : batch) dims.push_back(Extent(operand, letter));
  for (const std::string& letters : {rows, columns}) {
    int64_t extent = 1;
    for (const char letter : letters) {
      const int64_t factor = Extent(operand, letter);
      extent = extent < 0 || factor < 0 ? -1 : extent * factor;
    }
    dims.push_back(extent);
  }
  if (!CanReshape(dims)) node.Unsupported("joins axes whose extents only a run knows");
  return layers::Reshape(x, dims);
}

Lettered Multiplied(const OnnxNode& node, const Lettered& a, const Lettered& b,
                    const std::string& result) {
  const Product p = ProductOf(a, b, result);
  for (const char letter : p.batch) {
    if (Extent(a, letter) != Extent(b, letter)) node.Unsupported("broadcasts axes");
  }
  const Variable product = layers::MatMul(AsMatrices(node, a, p.batch, p.left, p.inner),
                                          AsMatrices(node, b, p.batch, p.inner, p.right));
  Lettered made = {product, p.batch + p.left + p.right};
  if (p.left.size() == 1 && p.right.size() == 1) return made;
  Ints dims;
  for (const char letter : p.batch + p.left) dims.push_back(Extent(a, letter));
  for (const char letter : p.right) dims.push_back(Extent(b, letter));
  if (!CanReshape(dims)) node.Unsupported("joins axes whose extents only a run knows");
  made.x = layers::Reshape(product, dims);
  return made;
}

std::string WithoutSpaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Without "->", the axes that an ellipsis stands for, then the letters that are there once.
std::string ImpliedResult(const std::string& text) {
  std::string result = text.find("...") == std::string::npos ? "" : "...";
  const std::set<char> letters(text.begin(), text.end());
  for (const char letter : letters) {
    const bool is_letter = letter != ',' && letter != '.';
    if (is_letter && std::ranges::count(text, letter) == 1) result += letter;
  }
  return result;
}

// The terms of the operands and that of the result.
std::vector<std::string> TermsOf(const OnnxNode& node) {
  std::string text = WithoutSpaces(node.String("equation", ""));
  size_t arrow = text.find("->");
  if (arrow == std::string::npos) {
    arrow = text.size();
    text += "->" + ImpliedResult(text);
  }
  const std::string result = text.substr(arrow + 2);
  text.resize(arrow);
  std::vector<std::string> terms(1);
  for (const char letter : text) {
    if (letter == ',') {
      terms.emplace_back();
    } else {
      terms.back() += letter;
    }
  }
  if (terms.size() != node.input_count())
    node.Invalid("its equation has ", terms.size(), " operands");
  terms.push_back(result);
  return terms;
}

void Einsum(const OnnxNode& node) {
  if (node.input_count() < 1 || node.input_count() > 2) {
    node.Unsupported("has ", node.input_count(), " operands, expected 1 or 2");
  }
  std::vector<std::string> terms = TermsOf(node);
  std::vector<Lettered> operands;
  size_t most = 0;  // axes that an ellipsis stands for
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Variable x = node.In(i);
    const size_t axes = x.dims().size();
    if (terms[i].find("...") != std::string::npos && axes + 3 >= terms[i].size()) {
      most = std::max(most, axes + 3 - terms[i].size());
    }
    operands.push_back({x, WithoutEllipsis(node, terms[i], axes)});
    const std::string& letters = operands.back().letters;
    if (letters.size() != axes) node.Invalid("a term doesn't fit the rank ", axes);
    if (std::set<char>(letters.begin(), letters.end()).size() != letters.size()) {
      node.Unsupported("takes a diagonal");
    }
    if (!IsFloat(x.dtype())) node.Unsupported("multiplies ", x.dtype());
  }
  std::string result = terms.back();
  if (result.find("...") != std::string::npos) {
    result = WithoutEllipsis(node, result, result.size() - 3 + most);
  }
  const std::string all = operands.front().letters + operands.back().letters;
  if (!std::ranges::all_of(result, [&](char letter) { return Has(all, letter); })) {
    node.Invalid("its result has a letter that no operand has");
  }
  if (operands.size() == 1) return node.Out(0, Ordered(Summed(operands[0], result), result));
  const Lettered a = Summed(operands[0], operands[1].letters + result);
  const Lettered b = Summed(operands[1], operands[0].letters + result);
  node.Out(0, Ordered(Multiplied(node, a, b, result), result));
}

}  // namespace

std::vector<OnnxConverterEntry> EinsumConverters() { return {{"Einsum", Einsum}}; }

}  // namespace skiff
