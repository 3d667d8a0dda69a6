#include <cmath>

#include "tests/operators/math/sorted_places.h"

namespace skiff::harness {
namespace {

struct TopKSpec {
  int32_t k = 1;
  int32_t axis = -1;
  bool largest = true;
  bool sorted = true;
};

Arrays TopKV2Reference(const Arrays& inputs, const TopKSpec& spec) {
  const Array& x = inputs.at("X")[0];
  const AxisLines lines(x.shape, spec.axis);
  Array out = x;
  if (x.shape.rank() > 0) {
    out.shape[spec.axis < 0 ? spec.axis + x.shape.rank() : spec.axis] = spec.k;
  }
  const auto count = static_cast<size_t>(out.shape.element_count());
  out.values.assign(count, 0.0);
  std::vector<double> places(count);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const std::vector<double> values = lines.Line(x, line);
    const std::vector<size_t> order = SortedPlaces(values, spec.largest);
    for (int64_t i = 0; i < spec.k; ++i) {
      const size_t from = order[static_cast<size_t>(i)];
      out.values[lines.Place(line, i, spec.k)] = values[from];
      places[lines.Place(line, i, spec.k)] = static_cast<double>(from);
    }
  }
  return {{"Out", {out}}, {"Indices", {Values(out.shape, places, DType::kInt64)}}};
}

OpCase CaseOfTopKV2(const std::string& name, const Array& x, const TopKSpec& spec) {
  return {.name = name,
          .type = "top_k_v2",
          .inputs = {{"X", {x}}},
          .attrs = {{"k", spec.k},
                    {"axis", spec.axis},
                    {"largest", spec.largest},
                    {"sorted", spec.sorted}},
          .reference = [=](const Arrays& inputs) { return TopKV2Reference(inputs, spec); },
          .outputs = {{"Out", 1}, {"Indices", 1}}};
}

OpCase TopKV2Case(const std::string& name, const Shape& shape, const TopKSpec& spec) {
  OpCase result = CaseOfTopKV2(name, Distinct(shape, 14), spec);
  result.gradients = {"X"};
  result.loss_outputs = {"Out"};
  return result;
}

}  // namespace

void AddTopKV2Cases(CaseList& cases) {
  cases.push_back(TopKV2Case("best", {4, 10}, {}));
  cases.push_back(TopKV2Case("best_five", {3, 17}, {.k = 5}));
  cases.push_back(TopKV2Case("smallest_five", {3, 17}, {.k = 5, .largest = false}));
  cases.push_back(TopKV2Case("unsorted", {3, 17}, {.k = 5, .sorted = false}));
  cases.push_back(TopKV2Case("all", {3, 7}, {.k = 7}));
  cases.push_back(TopKV2Case("first_axis", {9, 4}, {.k = 3, .axis = 0}));
  cases.push_back(TopKV2Case("middle_axis", {2, 6, 5}, {.k = 4, .axis = 1}));
  cases.push_back(
      TopKV2Case("middle_axis_smallest", {2, 6, 5}, {.k = 4, .axis = -2, .largest = false}));
  cases.push_back(TopKV2Case("vector", {9}, {.k = 3}));
  cases.push_back(TopKV2Case("scalar", {}, {}));
  cases.push_back(TopKV2Case("no_rows", {0, 5}, {.k = 2}));
  cases.push_back(CaseOfTopKV2("equal_values", Integers({6, 20}, 15, 0, 4), {.k = 6}));
  cases.push_back(CaseOfTopKV2("equal_smallest", Integers({6, 20}, 15, 0, 4, DType::kInt32),
                               {.k = 6, .largest = false}));
  Array holes = Distinct({3, 8}, 16);
  holes.values[1] = holes.values[4] = holes.values[23] = NAN;
  cases.push_back(CaseOfTopKV2("nan", holes, {.k = 3}));
  cases.push_back(CaseOfTopKV2("nan_among_the_smallest", holes, {.k = 7, .largest = false}));
  OpCase by_tensor = CaseOfTopKV2("k_as_tensor", Distinct({3, 8}, 16), {.k = 4, .axis = 1});
  by_tensor.attrs["k"] = int32_t{1};
  by_tensor.inputs["K"] = {Values({1}, {4}, DType::kInt32)};
  cases.push_back(by_tensor);
}

}  // namespace skiff::harness
