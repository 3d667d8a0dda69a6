#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseMulCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x * y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  AddBinaryCases("elementwise_mul", f, x, y, true, cases);
  for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
    OpCase one = UnaryCase(name, "elementwise_mul", rows, {});
    one.inputs["Y"] = {Values({1}, {-2.5})};
    one.reference = [](const Arrays& inputs) {
      Array out = inputs.at("X")[0];
      for (double& value : out.values) value *= inputs.at("Y")[0].values[0];
      return Arrays{{"Out", {out}}};
    };
    cases.push_back(one);
  }
  // Gradients that are sums of many elements: of few results and of many, along one dim and two.
  const std::vector<BinaryShapes> sums = {
      {"long_columns", {300, 33}, {33}},      {"few_long_columns", {8200, 2}, {2}},
      {"long_rows", {2, 8200}, {2, 1}},       {"channels_of_many_pixels", {3, 2, 50, 61}, {2}, 1},
      {"many_channels", {2, 70, 3}, {70}, 1}, {"scalar_of_many", {8200}, {1}}};
  uint64_t seed = 300;
  for (const BinaryShapes& shapes : sums) {
    cases.push_back(BinaryCase(shapes.name, "elementwise_mul", x(shapes.x, seed),
                               y(shapes.y, seed + 1), shapes.axis, f));
    cases.back().gradients = {"X", "Y"};
    seed += 2;
  }
  AddIntegerBinaryCases("elementwise_mul", f, -90, 90, cases);
}

}  // namespace skiff::harness
