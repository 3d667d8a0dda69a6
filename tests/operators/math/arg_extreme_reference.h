// Cases of arg_max and arg_min.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/math/axis_lines.h"

namespace skiff::harness {

struct ArgExtremeSpec {
  int64_t axis = -1;
  bool keepdims = false;
  bool flatten = false;
  bool is_int32 = false;
};

inline Arrays ArgExtremeReference(const Arrays& inputs, const ArgExtremeSpec& spec, bool is_max) {
  Array x = inputs.at("X")[0];
  const int rank = x.shape.rank();
  Shape shape;
  const auto reduced = spec.axis < 0 ? spec.axis + rank : spec.axis;
  for (int axis = 0; axis < rank; ++axis) {
    if (!spec.flatten && axis != reduced) {
      shape.Append(x.shape[axis]);
    } else if (spec.keepdims) {
      shape.Append(1);
    }
  }
  if (spec.flatten) x.shape = {x.shape.element_count()};
  const AxisLines lines(x.shape, spec.flatten ? 0 : spec.axis);
  std::vector<double> places;
  for (int64_t line = 0; line < lines.count(); ++line) {
    const std::vector<double> values = lines.Line(x, line);
    size_t best = 0;
    for (size_t i = 1; i < values.size() && !std::isnan(values[best]); ++i) {
      const bool wins = is_max ? values[i] > values[best] : values[i] < values[best];
      if (wins || std::isnan(values[i])) best = i;
    }
    places.push_back(static_cast<double>(best));
  }
  const DType dtype = spec.is_int32 ? DType::kInt32 : DType::kInt64;
  return {{"Out", {Values(shape, std::move(places), dtype)}}};
}

inline void AddArgExtremeCases(CaseList& cases, const std::string& type, bool is_max) {
  const auto add = [&](const std::string& name, const Array& x, const ArgExtremeSpec& spec) {
    OpCase result{
        .name = name,
        .type = type,
        .inputs = {{"X", {x}}},
        .attrs = {{"axis", spec.axis}, {"keepdims", spec.keepdims}, {"flatten", spec.flatten}},
        .reference =
            [=](const Arrays& inputs) { return ArgExtremeReference(inputs, spec, is_max); },
        .outputs = {{"Out", 1}}};
    if (spec.is_int32) result.attrs["dtype"] = static_cast<int32_t>(DType::kInt32);
    cases.push_back(result);
  };
  add("rows", Distinct({5, 7}, 1), {});
  add("long_rows", Distinct({3, 5001}, 2), {.axis = 1});
  add("first_axis", Distinct({5, 7}, 3), {.axis = 0});
  add("middle_axis", Distinct({3, 4, 5}, 4), {.axis = 1});
  add("many_columns", Distinct({9, 131}, 5), {.axis = -2});
  add("kept", Distinct({3, 4, 5}, 6), {.axis = 1, .keepdims = true});
  add("int32", Distinct({3, 4, 5}, 7), {.axis = 2, .is_int32 = true});
  add("int32_of_columns", Distinct({3, 4, 5}, 7), {.axis = 0, .is_int32 = true});
  add("flattened", Distinct({3, 4, 5}, 8), {.axis = 0, .flatten = true});
  add("flattened_and_kept", Distinct({3, 4}, 9), {.axis = 0, .keepdims = true, .flatten = true});
  add("vector", Distinct({11}, 10), {.axis = 0});
  add("scalar", Distinct({}, 11), {.axis = 0});
  add("no_rows", Distinct({0, 3}, 12), {.axis = 1});
  add("equal_rows", Integers({8, 2500}, 13, 0, 3, DType::kInt32), {.axis = 1});
  add("equal_columns", Integers({20, 9}, 13, 0, 3, DType::kInt64), {.axis = 0});
  Array holes = Uniform({3, 2500}, 14);
  holes.values[1] = holes.values[1700] = holes.values[4000] = NAN;
  add("nan_in_rows", holes, {.axis = 1});
  add("nan_in_columns", holes, {.axis = 0});
  add("infinities", Values({2, 3}, {-INFINITY, -INFINITY, -INFINITY, INFINITY, INFINITY, 1}),
      {.axis = 1});
  add("infinities_in_columns",
      Values({3, 2}, {-INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY, 1}), {.axis = 0});
  add("vocabulary_512x30522", Distinct({512, 30522}, 15), {.axis = 1});
  cases.back().benchmark_only = true;
  add("channels_16x1000x49", Distinct({16, 1000, 49}, 15), {.axis = 1});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
