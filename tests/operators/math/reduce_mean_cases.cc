#include <cmath>
#include <numeric>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double Mean(const std::vector<double>& elements) {
  const double sum = std::accumulate(elements.begin(), elements.end(), 0.0);
  return sum / static_cast<double>(elements.size());
}

double WholeMean(const std::vector<double>& elements) { return std::trunc(Mean(elements)); }

}  // namespace

void AddReduceMeanCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(
        ReductionCase("reduce_mean", layout.name, Uniform(layout.shape, 6), layout.axes, Mean));
    if (layout.shape.element_count() < 2000) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD"), AnyRankOfOne("X")};
  cases.push_back(ReductionCase("reduce_mean", "int32",
                                Integers({4, 9, 3}, 7, -50, 50, DType::kInt32), {.dim = {1}},
                                WholeMean));
  cases.push_back(
      ReductionCase("reduce_mean", "int64", Integers({4, 9}, 8, -50, 50), {.dim = {1}}, WholeMean));
  OpCase tokens = ReductionCase("reduce_mean", "tokens_2048x3072", Uniform({2048, 3072}, 6),
                                {.dim = {1}}, Mean);
  tokens.gradients = {"X"};
  tokens.benchmark_only = true;
  cases.push_back(tokens);
}

}  // namespace skiff::harness
