#include <numeric>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double Sum(const std::vector<double>& elements) {
  return std::accumulate(elements.begin(), elements.end(), 0.0);
}

// Sums of integers and bools are int64.
OpCase ReduceSumCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  OpCase result = ReductionCase("reduce_sum", name, x, axes, Sum);
  result.reference = [sums = result.reference](const Arrays& inputs) {
    Arrays expected = sums(inputs);
    Array& out = expected.at("Out")[0];
    if (out.fixed_dtype) out.dtype = DType::kInt64;
    return expected;
  };
  return result;
}

// Sums of 3 * 2^62: beyond the largest number.
OpCase ReduceSumWrappingCase(const std::string& name, const Shape& shape, int32_t axis) {
  const double quarter = 0x1p62;
  OpCase result = ReduceSumCase(name, Values(shape, std::vector<double>(6, quarter), DType::kInt64),
                                {.dim = {axis}});
  result.reference = [=](const Arrays&) {
    return Arrays{{"Out", {Values({2}, {-quarter, -quarter}, DType::kInt64)}}};
  };
  return result;
}

}  // namespace

void AddReduceSumCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(ReduceSumCase(layout.name, Uniform(layout.shape, 6), layout.axes));
    if (layout.shape.element_count() < 2000) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD"), AnyRankOfOne("X")};
  cases.push_back(ReduceSumCase("nothing_to_sum", Uniform({0, 3}, 6), {.dim = {0}}));
  // Of channels, whose elements are runs of neighbours that are longer or shorter than a block.
  cases.push_back(ReduceSumCase("large_images", Uniform({3, 2, 50, 60}, 6), {.dim = {0, 2, 3}}));
  cases.push_back(ReduceSumCase("small_images", Uniform({40, 3, 7, 9}, 6), {.dim = {0, 2, 3}}));
  cases.back().gradients = {"X"};
  cases.push_back(
      ReduceSumCase("int32", Integers({4, 9, 3}, 7, -50, 50, DType::kInt32), {.dim = {1}}));
  cases.push_back(ReduceSumCase("int64", Integers({4, 9}, 8, -50, 50), {.dim = {1}}));
  cases.back().attrs["in_dtype"] = static_cast<int32_t>(DType::kInt64);
  cases.back().attrs["out_dtype"] = static_cast<int32_t>(DType::kInt64);
  const Array large = Values({2, 3}, std::vector<double>(6, -0x1p30), DType::kInt32);
  cases.push_back(ReduceSumCase("int32_rows_beyond_32_bits", large, {.dim = {1}}));
  cases.push_back(
      ReduceSumCase("int32_all_beyond_32_bits", large, {.dim = {0}, .reduce_all = true}));
  cases.back().attrs["in_dtype"] = static_cast<int32_t>(DType::kInt32);
  cases.back().attrs["out_dtype"] = static_cast<int32_t>(DType::kInt64);
  cases.push_back(
      ReduceSumCase("int32_of_nothing", Integers({0, 3}, 7, 0, 1, DType::kInt32), {.dim = {0}}));
  cases.push_back(
      ReduceSumCase("bool_rows", Integers({4, 300}, 7, 0, 2, DType::kBool), {.dim = {1}}));
  cases.push_back(
      ReduceSumCase("bool_columns", Integers({300, 4}, 7, 0, 2, DType::kBool), {.dim = {0}}));
  cases.push_back(ReduceSumWrappingCase("int64_rows_wrap", {2, 3}, 1));
  cases.push_back(ReduceSumWrappingCase("int64_columns_wrap", {3, 2}, 0));
  OpCase bias = ReduceSumCase("bias_2048x3072", Uniform({2048, 3072}, 6), {.dim = {0}});
  bias.gradients = {"X"};
  bias.benchmark_only = true;
  cases.push_back(bias);
}

}  // namespace skiff::harness
