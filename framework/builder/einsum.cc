#include "framework/builder/einsum.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/op/einsum_equation.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

using Ints = std::vector<int64_t>;

// A tensor whose axes have letters.
struct Lettered {
  Variable x;
  std::string letters;

  size_t AxisOf(char letter) const { return letters.find(letter); }
  int64_t Extent(char letter) const { return x.dims()[AxisOf(letter)]; }
};

bool Has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// The letters of the operands' axes and of the result's.
EinsumTerms TermsOf(const LayerCall& call, const std::string& equation,
                    const std::vector<Variable>& operands) {
  std::vector<Shape> shapes;
  for (const Variable& x : operands) shapes.emplace_back(x.dims());
  try {
    return ParseEinsum(equation, shapes);
  } catch (const Error& error) {
    call.Fail(error.what());
  }
}

// The steps of one call.
class Contraction {
 public:
  Contraction(const LayerCall& call, const Site& site) : call_(call), site_(site) {}

  // The operand with these letters, each of which it then has once.
  Lettered Operand(const Variable& x, const std::string& letters) const {
    Lettered operand = {x, letters};
    for (size_t i = 0; i < operand.letters.size(); ++i) {
      const char letter = operand.letters[i];
      while (std::ranges::count(operand.letters, letter) > 1) TakeDiagonal(letter, &operand);
    }
    return operand;
  }

  // Sums over the axes whose letters aren't wanted.
  Lettered Summed(const Lettered& operand, const std::string& wanted) const {
    ReduceOptions options;
    Lettered left = {operand.x, {}};
    for (size_t i = 0; i < operand.letters.size(); ++i) {
      if (Has(wanted, operand.letters[i])) {
        left.letters += operand.letters[i];
      } else {
        options.dims.push_back(static_cast<int64_t>(i));
      }
    }
    if (options.dims.empty()) return left;
    CheckMayBeSummed(operand.x);
    left.x = ReduceSum(operand.x, options, site_);
    return left;
  }

  // The product of two operands, summed over the letters that aren't wanted.
  Lettered Product(Lettered a, Lettered b, const std::string& wanted) const {
    DropBroadcastAxes(&a, &b);
    a = Summed(a, b.letters + wanted);
    b = Summed(b, a.letters + wanted);
    std::string batch, left, inner, right;
    for (const char letter : a.letters) {
      (!Has(b.letters, letter) ? left : Has(wanted, letter) ? batch : inner) += letter;
    }
    if (inner.empty()) return ElementwiseProduct(a, b, wanted);
    for (const char letter : b.letters) {
      if (!Has(a.letters, letter)) right += letter;
    }
    CheckMayBeSummed(a.x);
    const Variable product =
        MatMul(Matrices(a, batch, left, inner), Matrices(b, batch, inner, right), {}, site_);
    return {WithAxes(product, a, b, batch, left, right), batch + left + right};
  }

  Variable Ordered(const Lettered& operand, const std::string& letters) const {
    if (operand.letters == letters) return operand.x;
    Ints permutation;
    for (const char letter : letters) {
      permutation.push_back(static_cast<int64_t>(operand.AxisOf(letter)));
    }
    return Transpose(operand.x, permutation, site_);
  }

 private:
  // Sums of whole numbers have another dtype, and their products of matrices have no kernels.
  void CheckMayBeSummed(const Variable& x) const {
    call_.Enforce(IsFloat(x.dtype()), "\"", x.name(), "\" is ", x.dtype(),
                  ", expected floats where the equation sums");
  }

  // Makes one axis of the first two that have the letter: the elements where their indices agree.
  void TakeDiagonal(char letter, Lettered* operand) const {
    const size_t first = operand->AxisOf(letter);
    const size_t second = operand->letters.find(letter, first + 1);
    const int64_t extent = operand->x.dims()[first];
    call_.Enforce(extent >= 0 && extent == operand->x.dims()[second], "the diagonal of axes ",
                  first, " and ", second, " of shape ", Shape(operand->x.dims()),
                  ", expected one known extent");
    Ints permutation = {static_cast<int64_t>(first), static_cast<int64_t>(second)};
    std::string letters(1, letter);
    for (size_t i = 0; i < operand->letters.size(); ++i) {
      if (i == first || i == second) continue;
      permutation.push_back(static_cast<int64_t>(i));
      letters += operand->letters[i];
    }
    Ints places(static_cast<size_t>(extent));
    for (int64_t i = 0; i < extent; ++i) places[static_cast<size_t>(i)] = i * (extent + 1);
    const Variable flat = FlattenRange(Transpose(operand->x, permutation, site_), 0, 1, site_);
    operand->x = Gather(flat, AssignValue({extent}, places, site_), 0, site_);
    operand->letters = std::move(letters);
  }

  // Removes the axes of 1 that the other operand has longer, or may have. Other axes of one letter
  // must agree.
  void DropBroadcastAxes(Lettered* a, Lettered* b) const {
    for (const char letter : std::string(a->letters)) {
      if (!Has(b->letters, letter)) continue;
      const int64_t of_a = a->Extent(letter);
      const int64_t of_b = b->Extent(letter);
      if (of_a == of_b) continue;
      if (of_a != 1 && of_b != 1) {
        call_.Enforce(of_a < 0 || of_b < 0, "an axis of one letter has extents ", of_a, " and ",
                      of_b);
        continue;
      }
      Lettered* repeated = of_a == 1 ? a : b;
      const size_t axis = repeated->AxisOf(letter);
      repeated->x = Squeeze(repeated->x, {static_cast<int64_t>(axis)}, site_);
      repeated->letters.erase(axis, 1);
    }
  }

  // The product of two operands whose letters are all wanted, in the order in which they are.
  Lettered ElementwiseProduct(const Lettered& a, const Lettered& b,
                              const std::string& wanted) const {
    std::string letters;
    for (const char letter : wanted) {
      const bool is_there = Has(a.letters, letter) || Has(b.letters, letter);
      if (is_there && !Has(letters, letter)) letters += letter;
    }
    return {ElementwiseMul(Aligned(a, letters), Aligned(b, letters), {}, site_), letters};
  }

  // The operand with these axes, of which those that it lacks have extent 1.
  Variable Aligned(const Lettered& operand, const std::string& letters) const {
    std::string own;
    Ints lacking;
    for (size_t i = 0; i < letters.size(); ++i) {
      if (Has(operand.letters, letters[i])) {
        own += letters[i];
      } else {
        lacking.push_back(static_cast<int64_t>(i));
      }
    }
    const Variable x = Ordered(operand, own);
    return lacking.empty() ? x : Unsqueeze(x, lacking, site_);
  }

  // x [batch…, rows…, columns…] with one axis of rows and one of columns.
  Variable Matrices(const Lettered& operand, const std::string& batch, const std::string& rows,
                    const std::string& columns) const {
    Variable x = Ordered(operand, batch + rows + columns);
    auto axis = static_cast<int64_t>(batch.size());
    for (const std::string& letters : {rows, columns}) {
      const auto count = static_cast<int64_t>(letters.size());
      if (count == 0) x = Unsqueeze(x, {axis}, site_);
      if (count > 1) x = FlattenRange(x, axis, axis + count - 1, site_);
      ++axis;
    }
    return x;
  }

  // The product [batch…, rows, columns] with the axes that Matrices joined.
  Variable WithAxes(const Variable& product, const Lettered& a, const Lettered& b,
                    const std::string& batch, const std::string& left,
                    const std::string& right) const {
    if (left.size() == 1 && right.size() == 1) return product;
    // Of a reshape, 0 copies the dim.
    Ints dims(batch.size(), 0);
    Ints joined;
    if (left.size() == 1) {
      dims.push_back(0);
    } else {
      for (const char letter : left) joined.push_back(a.Extent(letter));
    }
    for (const char letter : right) joined.push_back(b.Extent(letter));
    const auto unknown = std::ranges::count_if(joined, [](int64_t dim) { return dim < 0; });
    call_.Enforce(unknown <= 1 && std::ranges::count(joined, 0) == 0, "a product has the axes ",
                  Shape(joined), ", of which one is 0 or several are unknown");
    dims.insert(dims.end(), joined.begin(), joined.end());
    return Reshape(product, dims, site_);
  }

  const LayerCall& call_;
  const Site& site_;
};

}  // namespace

Variable Einsum(const std::string& equation, const std::vector<Variable>& operands, Site site) {
  const LayerCall call("einsum", "", site);
  call.CheckedNames(operands);
  const EinsumTerms terms = TermsOf(call, equation, operands);
  const std::string& result = terms.result;
  const Contraction contraction(call, site);
  std::vector<Lettered> left;
  for (size_t i = 0; i < operands.size(); ++i) {
    left.push_back(contraction.Operand(operands[i], terms.operands[i]));
  }
  Lettered product = left.front();
  for (size_t i = 1; i < left.size(); ++i) {
    std::string wanted = result;
    for (size_t later = i + 1; later < left.size(); ++later) wanted += left[later].letters;
    product = contraction.Product(std::move(product), left[i], wanted);
  }
  return contraction.Ordered(contraction.Summed(product, result), result);
}

}  // namespace skiff::layers
