#include <cmath>

#include "tests/operators/math/sorted_places.h"

namespace skiff::harness {
namespace {

Arrays ArgsortReference(const Arrays& inputs, int64_t axis, bool descending) {
  const Array& x = inputs.at("X")[0];
  const AxisLines lines(x.shape, axis);
  Array out = x;
  std::vector<double> places(x.values.size());
  for (int64_t line = 0; line < lines.count(); ++line) {
    const std::vector<double> values = lines.Line(x, line);
    const std::vector<size_t> order = SortedPlaces(values, descending);
    for (int64_t i = 0; i < lines.length; ++i) {
      const size_t from = order[static_cast<size_t>(i)];
      out.values[lines.Place(line, i, lines.length)] = values[from];
      places[lines.Place(line, i, lines.length)] = static_cast<double>(from);
    }
  }
  return {{"Out", {out}}, {"Indices", {Values(x.shape, places, DType::kInt64)}}};
}

OpCase CaseOfArgsort(const std::string& name, const Array& x, int32_t axis, bool descending) {
  return {
      .name = name,
      .type = "argsort",
      .inputs = {{"X", {x}}},
      .attrs = {{"axis", axis}, {"descending", descending}},
      .reference = [=](const Arrays& inputs) { return ArgsortReference(inputs, axis, descending); },
      .outputs = {{"Out", 1}, {"Indices", 1}}};
}

void AddBoth(CaseList& cases, const std::string& name, const Shape& shape, int32_t axis = -1) {
  for (const bool descending : {false, true}) {
    cases.push_back(CaseOfArgsort(name + (descending ? "_descending" : ""), Distinct(shape, 14),
                                  axis, descending));
    cases.back().gradients = {"X"};
    cases.back().loss_outputs = {"Out"};
  }
}

}  // namespace

void AddArgsortCases(CaseList& cases) {
  AddBoth(cases, "rows", {4, 10});
  AddBoth(cases, "first_axis", {7, 5}, 0);
  AddBoth(cases, "middle_axis", {2, 5, 3}, 1);
  AddBoth(cases, "vector", {19});
  AddBoth(cases, "long_vector", {1001});
  // On a device, beyond what a block sorts.
  cases.push_back(CaseOfArgsort("longer_vector", Distinct({1030}, 17), -1, false));
  AddBoth(cases, "scalar", {});
  AddBoth(cases, "no_rows", {0, 5});
  AddBoth(cases, "rows_of_nothing", {5, 0});
  for (const bool descending : {false, true}) {
    const std::string suffix = descending ? "_descending" : "";
    cases.push_back(
        CaseOfArgsort("equal_int64" + suffix, Integers({6, 40}, 15, 0, 4), -1, descending));
    cases.push_back(CaseOfArgsort("equal_int32" + suffix,
                                  Integers({40, 3}, 15, 0, 4, DType::kInt32), 0, descending));
    Array holes = Distinct({3, 30}, 16);
    holes.values[1] = holes.values[4] = holes.values[89] = NAN;
    cases.push_back(CaseOfArgsort("nan" + suffix, holes, -1, descending));
  }
  cases.push_back(CaseOfArgsort("rows_1024x1000", Distinct({1024, 1000}, 14), -1, true));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
