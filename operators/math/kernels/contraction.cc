#include "operators/math/kernels/contraction.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/tensor/shape.h"

namespace skiff {
namespace {

// A tensor of the plan by its number.
struct Part {
  int tensor = 0;
  LetteredTensor axes;
};

const LetteredAxis* Find(const LetteredTensor& axes, char letter) {
  const auto found = std::ranges::find(axes, letter, &LetteredAxis::letter);
  return found == axes.end() ? nullptr : &*found;
}

bool Has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

std::string LettersOf(const LetteredTensor& axes) {
  std::string letters;
  for (const LetteredAxis& axis : axes) letters += axis.letter;
  return letters;
}

int64_t StrideOf(const LetteredTensor& axes, char letter) {
  const LetteredAxis* axis = Find(axes, letter);
  return axis == nullptr ? 0 : axis->stride;
}

int64_t CountOf(const LetteredTensor& axes) {
  int64_t count = 1;
  for (const LetteredAxis& axis : axes) count = MultiplyCounts(count, axis.extent);
  return count;
}

LetteredTensor Contiguous(LetteredTensor axes) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    axes[i].stride = stride;
    stride = MultiplyCounts(stride, axes[i].extent);
  }
  return axes;
}

bool IsContiguous(const LetteredTensor& axes) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0; stride *= axes[i].extent) {
    if (axes[i].stride != stride) return false;
  }
  return true;
}

// Axes that are walked as one.
struct MergedAxes {
  int64_t size = 1;
  int64_t stride = 0;
};

// Returns nothing if the axes of the letters, in this order, don't follow each other in memory.
std::optional<MergedAxes> Merged(const LetteredTensor& axes, const std::string& letters) {
  MergedAxes merged;
  for (size_t i = letters.size(); i-- > 0;) {
    const LetteredAxis& axis = *Find(axes, letters[i]);
    if (merged.size == 1) {
      merged.stride = axis.stride;
    } else if (axis.stride != merged.stride * merged.size) {
      return std::nullopt;
    }
    merged.size *= axis.extent;
  }
  return merged;
}

// How a matrix is stored.
struct StoredMatrix {
  bool is_transposed = false;
  int64_t leading_dim = 0;
};

// Returns nothing if neither rows nor columns are contiguous.
std::optional<StoredMatrix> MatrixOf(const LetteredTensor& axes, const std::string& rows,
                                     const std::string& columns) {
  const std::optional<MergedAxes> row = Merged(axes, rows);
  const std::optional<MergedAxes> column = Merged(axes, columns);
  if (!row || !column) return std::nullopt;
  const auto leading_dim = [](const MergedAxes& outer, const MergedAxes& inner) {
    return outer.size == 1 ? inner.size : outer.stride;
  };
  if (column->size == 1 || column->stride == 1) {
    const int64_t stride = leading_dim(*row, *column);
    if (stride >= column->size) return StoredMatrix{false, stride};
  }
  if (row->size == 1 || row->stride == 1) {
    const int64_t stride = leading_dim(*column, *row);
    if (stride >= row->size) return StoredMatrix{true, stride};
  }
  return std::nullopt;
}

class Planner {
 public:
  Planner(const std::vector<LetteredTensor>& operands, const LetteredTensor& result)
      : operands_(operands), result_(result), result_number_(static_cast<int>(operands.size())) {}

  ContractionPlan Plan() {
    Part product = Summed(Operand(0), Wanted(0));
    for (size_t i = 1; i < operands_.size(); ++i) {
      const std::string wanted = Wanted(i);
      const Part next = Summed(Operand(i), wanted + LettersOf(product.axes));
      product = Product(product, next, wanted, i + 1 == operands_.size());
    }
    if (product.tensor != result_number_) AddElements(product, nullptr, {result_number_, result_});
    return std::move(plan_);
  }

 private:
  Part Operand(size_t i) const { return {static_cast<int>(i), operands_[i]}; }

  // Returns the letters of the result and of the operands behind operand i.
  std::string Wanted(size_t i) const {
    std::string wanted = LettersOf(result_);
    for (size_t later = i + 1; later < operands_.size(); ++later) {
      wanted += LettersOf(operands_[later]);
    }
    return wanted;
  }

  Part Temporary(const LetteredTensor& axes) {
    plan_.temporaries.push_back(CountOf(axes));
    return {result_number_ + static_cast<int>(plan_.temporaries.size()), Contiguous(axes)};
  }

  // Sums over the letters that aren't wanted.
  Part Summed(Part x, const std::string& wanted) {
    LetteredTensor kept;
    SumStep step;
    for (const LetteredAxis& axis : x.axes) {
      const bool is_kept = Has(wanted, axis.letter);
      if (is_kept) kept.push_back(axis);
      step.is_summed[static_cast<size_t>(step.shape.rank())] = !is_kept;
      step.shape.Append(axis.extent);
    }
    if (kept.size() == x.axes.size()) return x;
    if (!IsContiguous(x.axes)) x = Copied(x, x.axes);
    const Part sums = Temporary(kept);
    step.a = x.tensor;
    step.out = sums.tensor;
    plan_.steps.emplace_back(step);
    return sums;
  }

  Part Copied(const Part& x, const LetteredTensor& axes) {
    Part copy = Temporary(axes);
    AddElements(x, nullptr, copy);
    return copy;
  }

  // Adds out = a * b, or a copy of `a` if there is no `b`.
  void AddElements(const Part& a, const Part* b, const Part& out) {
    ElementStep step = {.a = a.tensor, .b = b == nullptr ? -1 : b->tensor, .out = out.tensor};
    LetteredTensor axes = out.axes;
    std::ranges::stable_sort(axes, std::greater<>(), &LetteredAxis::stride);
    for (const LetteredAxis& axis : axes) {
      const ElementStep::Loop loop = {axis.extent, StrideOf(a.axes, axis.letter),
                                      b == nullptr ? 0 : StrideOf(b->axes, axis.letter),
                                      axis.stride};
      if (!step.loops.empty() && Continues(loop, step.loops.back())) {
        const int64_t extent = step.loops.back().extent * loop.extent;
        step.loops.back() = loop;
        step.loops.back().extent = extent;
      } else {
        step.loops.push_back(loop);
      }
    }
    SKIFF_ENFORCE(step.loops.size() <= ElementStep::kMaxLoops, kUnimplemented,
                  "a step of an einsum has ", step.loops.size(), " axes, expected at most ",
                  ElementStep::kMaxLoops);
    plan_.steps.emplace_back(std::move(step));
  }

  // Returns whether the loops are one over all tensors.
  static bool Continues(const ElementStep::Loop& inner, const ElementStep::Loop& outer) {
    return outer.stride_a == inner.stride_a * inner.extent &&
           outer.stride_b == inner.stride_b * inner.extent &&
           outer.stride_out == inner.stride_out * inner.extent;
  }

  // The product of two operands, summed over the letters that aren't wanted.
  Part Product(const Part& a, const Part& b, const std::string& wanted, bool is_last) {
    std::string batch, left, inner, right;
    for (const LetteredAxis& axis : a.axes) {
      const bool is_in_b = Find(b.axes, axis.letter) != nullptr;
      (!is_in_b ? left : Has(wanted, axis.letter) ? batch : inner) += axis.letter;
    }
    for (const LetteredAxis& axis : b.axes) {
      if (Find(a.axes, axis.letter) == nullptr) right += axis.letter;
    }
    if (inner.empty()) return ElementProduct(a, b, wanted, is_last);
    // The columns of the products are innermost in the result, too.
    const bool swaps = is_last && !result_.empty() && Has(left, result_.back().letter);
    return swaps ? MatrixProduct(b, a, batch, right, inner, left, is_last)
                 : MatrixProduct(a, b, batch, left, inner, right, is_last);
  }

  Part ElementProduct(const Part& a, const Part& b, const std::string& wanted, bool is_last) {
    Part out = {result_number_, result_};
    if (!is_last) out = Temporary(AxesOf(a, b, InOrder(wanted, a, b)));
    AddElements(a, &b, out);
    return out;
  }

  // Returns the letters of `a` and `b`, all of which are wanted, in the order of `wanted`.
  static std::string InOrder(const std::string& wanted, const Part& a, const Part& b) {
    std::string letters;
    for (const char letter : wanted) {
      const bool is_there = Find(a.axes, letter) != nullptr || Find(b.axes, letter) != nullptr;
      if (is_there && !Has(letters, letter)) letters += letter;
    }
    return letters;
  }

  // Returns the axes of `a` or `b` that have these letters.
  static LetteredTensor AxesOf(const Part& a, const Part& b, const std::string& letters) {
    LetteredTensor axes;
    for (const char letter : letters) {
      const LetteredAxis* axis = Find(a.axes, letter);
      axes.push_back(axis == nullptr ? *Find(b.axes, letter) : *axis);
    }
    return axes;
  }

  Part MatrixProduct(Part a, Part b, const std::string& batch, const std::string& left,
                     const std::string& inner, const std::string& right, bool is_last) {
    MatrixStep step;
    GemmSpec& spec = step.spec;
    const auto size = [](const Part& part, const std::string& letters) {
      int64_t product = 1;
      for (const char letter : letters) product *= Find(part.axes, letter)->extent;
      return product;
    };
    spec.m = size(a, left);
    spec.n = size(b, right);
    spec.k = size(a, inner);
    const StoredMatrix stored_a = Stored(&a, batch, left, inner);
    const StoredMatrix stored_b = Stored(&b, batch, inner, right);
    const Part out = MatrixOutput(a, b, batch, left, right, is_last);
    spec.trans_a = stored_a.is_transposed;
    spec.lda = stored_a.leading_dim;
    spec.trans_b = stored_b.is_transposed;
    spec.ldb = stored_b.leading_dim;
    spec.ldc = MatrixOf(out.axes, left, right)->leading_dim;
    for (const char letter : batch) {
      spec.batch.push_back({Find(a.axes, letter)->extent, StrideOf(a.axes, letter),
                            StrideOf(b.axes, letter), StrideOf(out.axes, letter)});
    }
    step.a = a.tensor;
    step.b = b.tensor;
    step.out = out.tensor;
    plan_.steps.emplace_back(step);
    return out;
  }

  // Returns how the matrices of a factor are stored, after it is copied if that is no form that a
  // product takes.
  StoredMatrix Stored(Part* factor, const std::string& batch, const std::string& rows,
                      const std::string& columns) {
    std::optional<StoredMatrix> stored = MatrixOf(factor->axes, rows, columns);
    if (!stored) {
      *factor = Copied(*factor, AxesOf(*factor, *factor, batch + rows + columns));
      stored = MatrixOf(factor->axes, rows, columns);
    }
    return *stored;
  }

  // Returns the result if the matrices can be written there, else a temporary.
  Part MatrixOutput(const Part& a, const Part& b, const std::string& batch, const std::string& left,
                    const std::string& right, bool is_last) {
    const std::string letters = batch + left + right;
    const bool has_letters = result_.size() == letters.size();
    if (is_last && has_letters) {
      const std::optional<StoredMatrix> stored = MatrixOf(result_, left, right);
      if (stored && !stored->is_transposed) return {result_number_, result_};
    }
    return Temporary(AxesOf(a, b, letters));
  }

  const std::vector<LetteredTensor>& operands_;
  const LetteredTensor& result_;
  const int result_number_;
  ContractionPlan plan_;
};

bool IsEmpty(const LetteredTensor& axes) {
  return std::ranges::any_of(axes, [](const LetteredAxis& axis) { return axis.extent == 0; });
}

bool IsArithmetic(const ContractionStep& step) {
  const auto* elements = std::get_if<ElementStep>(&step);
  return elements == nullptr || elements->b >= 0;
}

}  // namespace

LetteredTensor WithLetters(const Shape& shape, std::string_view letters) {
  LetteredTensor axes;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; stride *= shape[i], --i) {
    const char letter = letters[static_cast<size_t>(i)];
    if (shape[i] == 1) continue;
    const auto same = std::ranges::find(axes, letter, &LetteredAxis::letter);
    if (same == axes.end()) {
      axes.push_back({letter, shape[i], stride});
    } else {
      same->stride += stride;
    }
  }
  std::ranges::reverse(axes);
  return axes;
}

int64_t ElementStep::count() const {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.extent;
  return count;
}

ContractionPlan PlanContraction(const std::vector<LetteredTensor>& operands,
                                const LetteredTensor& result, int64_t result_count) {
  ContractionPlan plan;
  // Sums of nothing are 0.
  const bool has_terms = std::ranges::none_of(operands, IsEmpty);
  if (has_terms) plan = Planner(operands, result).Plan();
  plan.zeroes_result = !has_terms || CountOf(result) < result_count;
  plan.result_count = result_count;
  return plan;
}

double FlopOf(const ContractionPlan& plan) {
  double flop = 0;
  for (const ContractionStep& step : plan.steps) {
    const auto* matrices = std::get_if<MatrixStep>(&step);
    if (matrices == nullptr) continue;
    const GemmSpec& spec = matrices->spec;
    double products = 2.0 * static_cast<double>(spec.m) * static_cast<double>(spec.k) *
                      static_cast<double>(spec.n);
    for (const GemmBatchDim& dim : spec.batch) products *= static_cast<double>(dim.size);
    flop += products;
  }
  return flop;
}

bool RoundsOnce(const ContractionPlan& plan) {
  const bool has_sums = std::ranges::any_of(plan.steps, [](const ContractionStep& step) {
    return std::holds_alternative<SumStep>(step);
  });
  return !has_sums && std::ranges::count_if(plan.steps, IsArithmetic) <= 1;
}

}  // namespace skiff
