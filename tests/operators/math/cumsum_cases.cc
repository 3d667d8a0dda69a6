#include <cstdint>
#include <string>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Attrs {
  int32_t axis = -1;
  bool flatten = false;
  bool exclusive = false;
  bool reverse = false;
};

// Each sum separately, straight from the definition.
Arrays CumsumReference(const Arrays& inputs, const Attrs& attrs) {
  Array out = inputs.at("X")[0];
  const std::vector<double>& x = inputs.at("X")[0].values;
  const Shape& shape = out.shape;
  const int rank = shape.rank();
  const int axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  const bool one_row = attrs.flatten || rank == 0;
  const int64_t length = one_row ? shape.element_count() : shape[axis];
  const int64_t inner = one_row ? 1 : shape.element_count(axis + 1, rank);
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t row = i / inner % length;
    double sum = 0;
    for (int64_t other = 0; other < length; ++other) {
      const bool counts = attrs.reverse ? other > row : other < row;
      if (!counts && (attrs.exclusive || other != row)) continue;
      sum += x[static_cast<size_t>(i + (other - row) * inner)];
    }
    out.values[static_cast<size_t>(i)] = sum;
  }
  if (attrs.flatten) out.shape = {shape.element_count()};
  return {{"Out", {out}}};
}

OpCase CaseOfCumsum(const std::string& name, Array x, const Attrs& attrs) {
  return {.name = name,
          .type = "cumsum",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {{"axis", attrs.axis},
                    {"flatten", attrs.flatten},
                    {"exclusive", attrs.exclusive},
                    {"reverse", attrs.reverse}},
          .reference = [attrs](const Arrays& inputs) { return CumsumReference(inputs, attrs); },
          .outputs = {{"Out", 1}}};
}

OpCase GradientCase(const std::string& name, const Shape& shape, const Attrs& attrs) {
  OpCase result = CaseOfCumsum(name, Uniform(shape, 8), attrs);
  result.gradients = {"X"};
  return result;
}

}  // namespace

void AddCumsumCases(CaseList& cases) {
  cases.push_back(GradientCase("vector", {19}, {}));
  cases.push_back(GradientCase("one_element", {1}, {}));
  cases.push_back(GradientCase("rank_0", Shape(), {}));
  cases.push_back(GradientCase("last_axis", {3, 4, 5}, {}));
  cases.push_back(GradientCase("middle_axis", {3, 4, 5}, {.axis = 1}));
  cases.push_back(GradientCase("first_axis", {3, 4, 5}, {.axis = 0}));
  cases.push_back(GradientCase("negative_axis", {3, 4, 5}, {.axis = -3}));
  cases.push_back(GradientCase("more_columns_than_a_block", {2, 3, 65}, {.axis = 1}));
  cases.push_back(GradientCase("axis_of_one", {4, 1, 3}, {.axis = 1}));
  cases.push_back(GradientCase("exclusive", {6, 5}, {.exclusive = true}));
  cases.push_back(GradientCase("reverse", {3, 5}, {.reverse = true}));
  cases.push_back(GradientCase("exclusive_reverse", {3, 5, 2},
                               {.axis = 1, .exclusive = true, .reverse = true}));
  cases.push_back(GradientCase("flatten", {3, 5}, {.flatten = true}));
  cases.push_back(GradientCase("flatten_ignores_axis", {3, 5}, {.axis = 7, .flatten = true}));
  cases.push_back(GradientCase("flatten_exclusive_reverse", {2, 3, 2},
                               {.flatten = true, .exclusive = true, .reverse = true}));
  cases.push_back(CaseOfCumsum("no_elements", Uniform({0, 4}, 1), {}));
  cases.push_back(CaseOfCumsum("no_terms", Uniform({4, 0}, 1), {}));
  cases.push_back(CaseOfCumsum("no_elements_flatten", Uniform({4, 0}, 1), {.flatten = true}));
  cases.push_back(CaseOfCumsum("threads_over_rows", Uniform({2000, 37}, 2), {}));
  cases.push_back(CaseOfCumsum("threads_over_columns", Uniform({37, 3000}, 3), {.axis = 0}));
  cases.push_back(
      CaseOfCumsum("threads_over_both", Uniform({7, 50, 130}, 4), {.axis = 1, .reverse = true}));
  // On a device, the work of blocks: of whole vectors, of others, and of lines that are cut.
  cases.push_back(CaseOfCumsum("row_of_vectors", Uniform({3, 132}, 7), {}));
  cases.push_back(CaseOfCumsum("reverse_row_of_vectors", Uniform({3, 132}, 7), {.reverse = true}));
  cases.push_back(CaseOfCumsum("long_row", Uniform({2, 1303}, 7), {.exclusive = true}));
  cases.push_back(CaseOfCumsum("long_vector", Uniform({8197}, 7), {}));
  cases.push_back(CaseOfCumsum("reverse_long_vector", Uniform({8200}, 7),
                               {.exclusive = true, .reverse = true}));
  cases.push_back(
      CaseOfCumsum("long_columns", Uniform({2, 500, 3}, 7), {.axis = 1, .exclusive = true}));
  cases.push_back(
      CaseOfCumsum("reverse_long_columns", Uniform({300, 5}, 7), {.axis = 0, .reverse = true}));
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(
        CaseOfCumsum(std::string(DTypeName(dtype)), Integers({5, 7}, 5, -90, 90, dtype), {}));
  }
  for (const auto& [name, axis] :
       {std::pair("rows_of_4M_elements", -1), std::pair("columns_of_4M_elements", 0)}) {
    OpCase large = CaseOfCumsum(name, Uniform({1024, 4096}, 6), {.axis = axis});
    large.benchmark_only = true;
    cases.push_back(std::move(large));
  }
}

}  // namespace skiff::harness
