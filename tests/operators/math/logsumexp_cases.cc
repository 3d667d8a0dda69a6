#include <algorithm>
#include <cmath>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double LogSumExp(const std::vector<double>& elements) {
  double max = -INFINITY;
  for (const double element : elements) max = std::max(max, element);
  if (std::isinf(max)) return max;
  double sum = 0;
  for (const double element : elements) sum += std::exp(element - max);
  return max + std::log(sum);
}

OpCase LogsumexpCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  OpCase made = ReductionCase("logsumexp", name, x, axes, LogSumExp);
  made.attrs = {{"axis", axes.dim}, {"keepdim", axes.keep_dim}, {"reduce_all", axes.reduce_all}};
  return made;
}

}  // namespace

void AddLogsumexpCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(LogsumexpCase(layout.name, Uniform(layout.shape, 1, -3, 3), layout.axes));
    if (layout.shape.element_count() < 2000) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD")};
  cases.push_back(LogsumexpCase("no_elements_for_an_output", Uniform({3, 0}, 2), {.dim = {1}}));
  cases.push_back(LogsumexpCase("no_elements_between", Uniform({0, 3, 4}, 2), {.dim = {0, 2}}));
  // The exponentials alone would be infinite or 0.
  cases.push_back(LogsumexpCase("large", Uniform({4, 9}, 3, 990, 1000), {.dim = {1}}));
  cases.push_back(LogsumexpCase("far_below_0", Uniform({4, 9}, 4, -1000, -990), {.dim = {0}}));
  // Masked scores are -inf.
  const Array infinities =
      Values({4, 2}, {-INFINITY, -INFINITY, -INFINITY, 1, INFINITY, 1, INFINITY, INFINITY});
  cases.push_back(LogsumexpCase("infinities_in_rows", infinities, {.dim = {1}}));
  cases.push_back(LogsumexpCase("infinities_in_columns", infinities, {.dim = {0}}));
  cases.push_back({.name = "gradient_of_masked_scores",
                   .type = "logsumexp_grad",
                   .inputs = {{"X", {Values({2, 2}, {-INFINITY, -INFINITY, -INFINITY, 1})}},
                              {"Out", {Values({2}, {-INFINITY, 1})}},
                              {"Out@GRAD", {Values({2}, {3, 3})}}},
                   .attrs = {{"axis", std::vector<int32_t>{1}}},
                   .reference =
                       [](const Arrays&) {
                         return Arrays{{"X@GRAD", {Values({2, 2}, {0, 0, 0, 3})}}};
                       },
                   .outputs = {{"X@GRAD", 1}}});
  OpCase scores = LogsumexpCase("scores_4096x1000", Uniform({4096, 1000}, 5, -3, 3), {.dim = {1}});
  scores.gradients = {"X"};
  scores.benchmark_only = true;
  cases.push_back(scores);
}

}  // namespace skiff::harness
