#include <numeric>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double Sum(const std::vector<double>& elements) {
  return std::accumulate(elements.begin(), elements.end(), 0.0);
}

OpCase Case(const std::string& name, const Array& x, const ReducedAxes& axes) {
  return ReductionCase("reduce_sum", name, x, axes, Sum);
}

// Sums of 3 * 2^30 as int32, 3 * 2^62 as int64: beyond the largest number.
OpCase WrappingCase(const std::string& name, DType dtype, const Shape& shape, int32_t axis) {
  const double quarter = dtype == DType::kInt32 ? 0x1p30 : 0x1p62;
  OpCase result =
      Case(name, Values(shape, std::vector<double>(6, quarter), dtype), {.dim = {axis}});
  result.reference = [=](const Arrays&) {
    return Arrays{{"Out", {Values({2}, {-quarter, -quarter}, dtype)}}};
  };
  return result;
}

}  // namespace

void AddReduceSumCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(Case(layout.name, Uniform(layout.shape, 6), layout.axes));
    if (layout.shape.element_count() < 2000) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD"), AnyRankOfOne("X")};
  cases.push_back(Case("nothing_to_sum", Uniform({0, 3}, 6), {.dim = {0}}));
  cases.back().gradients = {"X"};
  cases.push_back(Case("int32", Integers({4, 9, 3}, 7, -50, 50, DType::kInt32), {.dim = {1}}));
  cases.push_back(Case("int64", Integers({4, 9}, 8, -50, 50), {.dim = {1}}));
  cases.push_back(WrappingCase("int32_rows_wrap", DType::kInt32, {2, 3}, 1));
  cases.push_back(WrappingCase("int64_rows_wrap", DType::kInt64, {2, 3}, 1));
  cases.push_back(WrappingCase("int64_columns_wrap", DType::kInt64, {3, 2}, 0));
  OpCase bias = Case("bias_2048x3072", Uniform({2048, 3072}, 6), {.dim = {0}});
  bias.gradients = {"X"};
  bias.benchmark_only = true;
  cases.push_back(bias);
}

}  // namespace skiff::harness
