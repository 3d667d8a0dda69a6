#include <algorithm>
#include <optional>

#include "tests/operators/half_case.h"
#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

struct Setting {
  bool sorted = true;
  std::optional<int> axis = std::nullopt;  // not negative; none: X is flat
  DType dtype = DType::kInt64;
};

// The elements at place `at` of the axis.
std::vector<double> SliceAt(const Array& x, int axis, int64_t at) {
  std::vector<double> slice;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const auto coordinates = CoordinatesOf(x.shape, static_cast<int64_t>(i));
    if (coordinates[static_cast<size_t>(axis)] == at) slice.push_back(x.values[i]);
  }
  return slice;
}

Arrays UniqueReference(const Array& given, const Setting& setting) {
  const int axis = setting.axis.value_or(0);
  const Array x = setting.axis ? given : Reshaped(given, Shape{given.shape.element_count()});
  std::vector<std::vector<double>> slices;
  for (int64_t i = 0; i < x.shape[axis]; ++i) slices.push_back(SliceAt(x, axis, i));
  std::vector<std::vector<double>> different;
  for (const auto& slice : slices) {
    if (std::count(different.begin(), different.end(), slice) == 0) different.push_back(slice);
  }
  if (setting.sorted) std::sort(different.begin(), different.end());
  const auto place_in = [](const auto& list, const auto& slice) {
    return static_cast<double>(std::find(list.begin(), list.end(), slice) - list.begin());
  };
  std::vector<double> indices;
  std::vector<double> index;
  std::vector<double> counts;
  for (const auto& slice : different) {
    indices.push_back(place_in(slices, slice));
    counts.push_back(static_cast<double>(std::count(slices.begin(), slices.end(), slice)));
  }
  for (const auto& slice : slices) index.push_back(place_in(different, slice));
  const auto count = static_cast<int64_t>(different.size());
  Shape out = x.shape;
  out[axis] = count;
  const Array values = Generated(out, [&](std::vector<int64_t> at) {
    at[static_cast<size_t>(axis)] =
        static_cast<int64_t>(indices[static_cast<size_t>(at[static_cast<size_t>(axis)])]);
    return x.values[IndexOf(x.shape, at)];
  });
  return {{"Out", {TypedLike(values, given)}},
          {"Indices", {Values({count}, indices, setting.dtype)}},
          {"Index", {Values({x.shape[axis]}, index, setting.dtype)}},
          {"Counts", {Values({count}, counts, setting.dtype)}}};
}

}  // namespace

void AddUniqueCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Setting& setting,
                       AttributeMap attrs = {}) {
    attrs.insert({{"is_sorted", setting.sorted}, {"dtype", static_cast<int32_t>(setting.dtype)}});
    // Without effect here, but PaddlePaddle computes no more than these ask for.
    attrs.insert({{"return_index", true}, {"return_inverse", true}, {"return_counts", true}});
    if (setting.axis) attrs.insert({{"axis", std::vector<int32_t>{*setting.axis}}});
    cases.push_back({.name = name,
                     .type = "unique",
                     .inputs = {{"X", {x}}},
                     .attrs = std::move(attrs),
                     .reference =
                         [setting](const Arrays& inputs) {
                           return UniqueReference(inputs.at("X")[0], setting);
                         },
                     .outputs = {{"Out", 1}, {"Indices", 1}, {"Index", 1}, {"Counts", 1}}});
  };
  const Array vector = Values({7}, {3, -1, 3, 0.5, -1, 3, 2});
  add("in_order_of_first_places", vector, {.sorted = false});
  add("sorted", vector, {});
  cases.push_back(InHalf(cases.back()));
  add("places_of_int32", vector, {.dtype = DType::kInt32});
  add("int64", Integers({61}, 1, -9, 9), {});
  add("int32_in_order_of_first_places", Integers({61}, 2, -9, 9, DType::kInt32), {.sorted = false});
  add("flat", Integers({3, 4, 5}, 3, 0, 20), {});
  add("rows", Integers({9, 2}, 4, 0, 3), {.axis = 0});
  add("columns", Integers({2, 9}, 5, 0, 3, DType::kInt32), {.axis = 1});
  add("middle_axis", Integers({2, 11, 2}, 6, 0, 2), {.axis = 1});
  add("last_axis_from_the_back", Integers({2, 9}, 5, 0, 3), {.axis = 1},
      {{"axis", std::vector<int32_t>{-1}}});
  add("without_flags", vector, {},
      {{"return_index", false}, {"return_inverse", false}, {"return_counts", false}});
  add("scalar", Values(Shape(), {3}), {});
  add("nothing", Values({0}, {}), {});
  add("no_rows", Values({0, 2}, {}), {.axis = 0});
  add("rows_of_nothing", Values({2, 0}, {}), {.axis = 0});
  add("all_equal", Values({5}, {2, 2, 2, 2, 2}), {.sorted = false});
  add("many", Integers({5001}, 7, 0, 300), {.sorted = false});
}

}  // namespace skiff::harness
