#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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

// The gradient along one axis, of more elements than finite differences have time for.
OpCase LogsumexpGradCase(const std::string& name, const Array& x, int32_t axis) {
  OpCase made = LogsumexpCase(name, x, {.dim = {axis}});
  made.type = "logsumexp_grad";
  made.inputs["Out"] = made.reference(made.inputs).at("Out");
  made.inputs["Out@GRAD"] = {Uniform(made.inputs.at("Out")[0].shape, 11)};
  made.outputs = {{"X@GRAD", 1}};
  made.reference = [axis](const Arrays& inputs) {
    Array dx = inputs.at("X")[0];
    const Array& out = inputs.at("Out")[0];
    const auto inner = static_cast<size_t>(dx.shape.element_count(axis + 1, dx.shape.rank()));
    const auto line = inner * static_cast<size_t>(dx.shape[axis]);
    for (size_t i = 0; i < dx.values.size(); ++i) {
      const size_t of = i / line * inner + i % inner;
      dx.values[i] = inputs.at("Out@GRAD")[0].values[of] * std::exp(dx.values[i] - out.values[of]);
    }
    return Arrays{{"X@GRAD", {dx}}};
  };
  return made;
}

// Columns with infinities in some blocks of theirs: -inf alone; in the first elements; but for the
// last element; an inf; both; NaN.
Array LongInfinities() {
  constexpr int64_t kRows = 5000;
  Array x = Uniform({kRows, 6}, 10, -3, 3);
  for (int64_t row = 0; row < kRows; ++row) {
    double* values = x.values.data() + row * 6;
    values[0] = -INFINITY;
    if (row < 2000) values[1] = values[4] = -INFINITY;
    if (row < kRows - 1) values[2] = -INFINITY;
    if (row == 4000) values[3] = values[4] = INFINITY;
    if (row == 3000) values[5] = NAN;
  }
  return x;
}

// Columns of one 17 and many zeros, each of which float32 can't add to what is e^17 times as much.
Array LongSumsBeside1() {
  Array x = Values({100000, 2}, std::vector<double>(200000, 0));
  x.values[0] = 17;
  x.values[150001] = 17;
  return x;
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
  // Lines that are computed in blocks.
  cases.push_back(LogsumexpCase("rows_of_blocks", Uniform({3, 9001}, 6, -3, 3), {.dim = {1}}));
  cases.push_back(LogsumexpCase("long_columns", Uniform({2, 2051, 70}, 7, -3, 3), {.dim = {1}}));
  cases.push_back(
      LogsumexpCase("a_long_line", Uniform({40, 1000}, 8, -3, 3), {.reduce_all = true}));
  cases.push_back(LogsumexpCase("long_runs", Uniform({1100, 2, 50}, 9, -3, 3), {.dim = {0, 2}}));
  cases.push_back(LogsumexpCase("blocks_of_infinities", LongInfinities(), {.dim = {0}}));
  cases.push_back(LogsumexpCase("long_sums_beside_1", LongSumsBeside1(), {.dim = {0}}));
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
  const auto add_gradient = [&](const std::string& name, const Shape& shape, int32_t axis) {
    cases.push_back(LogsumexpGradCase(name, Uniform(shape, 12, -3, 3), axis));
  };
  add_gradient("gradient_of_rows", {70, 300}, 1);
  add_gradient("gradient_of_columns", {300, 130}, 0);
  add_gradient("gradient_of_middle_axis", {5, 83, 47}, 1);
  add_gradient("gradient_of_long_rows", {3, 9001}, 1);
  OpCase scores = LogsumexpCase("scores_4096x1000", Uniform({4096, 1000}, 5, -3, 3), {.dim = {1}});
  scores.gradients = {"X"};
  scores.benchmark_only = true;
  cases.push_back(scores);
}

}  // namespace skiff::harness
