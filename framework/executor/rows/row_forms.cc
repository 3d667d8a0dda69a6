#include "framework/executor/rows/row_forms.h"

#include <algorithm>
#include <utility>

namespace skiff {
namespace {

// Adds a * b to `sum`. Returns false on overflow.
bool AddProduct(int64_t a, int64_t b, int64_t* sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

std::optional<RowForm> MultipleOf(const CountProbes& probes, const std::vector<int64_t>& rows,
                                  size_t count) {
  const int64_t at_0 = probes.counts[0][count];
  for (size_t i = 1; i < probes.size(); ++i) {
    const int64_t change = probes.counts[i][count] - at_0;
    if (change == 0) continue;
    const int64_t sign = change < 0 ? -1 : 1;
    RowForm form{.terms = {{.count = count, .factor = (rows[i] - rows[0]) * sign}},
                 .constant = 0,
                 .divisor = change * sign,
                 .capacity = rows[0]};
    const bool is_small = AddProduct(rows[0], form.divisor, &form.constant) &&
                          AddProduct(-form.terms[0].factor, at_0, &form.constant);
    if (!is_small || !form.Fits(probes, rows)) return std::nullopt;
    return form;
  }
  return std::nullopt;
}

}  // namespace

bool RowForm::IsKnown(const std::vector<int64_t>& counts) const {
  return std::ranges::all_of(terms, [&](const Term& term) { return counts[term.count] >= 0; });
}

std::optional<int64_t> RowForm::Evaluate(const std::vector<int64_t>& counts) const {
  int64_t sum = constant;
  for (const Term& term : terms) {
    if (!AddProduct(term.factor, counts[term.count], &sum)) return std::nullopt;
  }
  if (sum % divisor != 0) return std::nullopt;
  return sum / divisor;
}

bool RowForm::Fits(const CountProbes& probes, const std::vector<int64_t>& rows) const {
  for (size_t i = 0; i < probes.size(); ++i) {
    if (Evaluate(probes.counts[i]) != rows[i]) return false;
  }
  return true;
}

std::vector<RowForm> MultiplesOfCounts(const CountProbes& probes, const std::vector<int64_t>& rows,
                                       size_t begin, size_t end) {
  std::vector<RowForm> forms;
  for (size_t count = begin; count < end; ++count) {
    std::optional<RowForm> form = MultipleOf(probes, rows, count);
    if (form) forms.push_back(std::move(*form));
  }
  return forms;
}

std::optional<RowForm> SumOfClasses(const CountProbes& probes, const std::vector<int64_t>& rows) {
  RowForm form{.terms = {}, .constant = rows[1], .divisor = 1, .capacity = rows[0]};
  for (size_t i = 0; i < probes.classes; ++i) {
    const int64_t factor = (rows[probes.Other(i)] - rows[1]) * probes.change;
    if (factor != 0) form.terms.push_back({.count = i, .factor = factor});
    if (!AddProduct(-factor, probes.counts[1][i], &form.constant)) return std::nullopt;
  }
  if (!form.Fits(probes, rows)) return std::nullopt;
  return form;
}

}  // namespace skiff
