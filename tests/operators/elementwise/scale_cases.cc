#include <cmath>

#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddScaleCases(CaseList& cases) {
  // Numbers that float32 holds exactly.
  const UnaryFunction f = [](double x) { return -2.5 * x + 0.75; };
  AddUnaryCases("scale", f, -1, 1, {}, {{"scale", -2.5f}, {"bias", 0.75f}}, cases);
  OpCase bias_first = UnaryCase("bias_first", "scale", Uniform({5, 7}, 21),
                                [](double x) { return -2.5 * (x + 0.75); });
  bias_first.attrs = {{"scale", -2.5f}, {"bias", 0.75f}, {"bias_after_scale", false}};
  bias_first.gradients = {"X"};
  cases.push_back(bias_first);
  OpCase defaults = UnaryCase("defaults", "scale", Uniform({5, 7}, 22), [](double x) { return x; });
  defaults.gradients = {"X"};
  cases.push_back(defaults);
  OpCase tensor = UnaryCase("factor_in_tensor", "scale", Uniform({5, 7}, 23), f);
  tensor.attrs = {{"scale", 9.0f}, {"bias", 0.75f}};
  tensor.inputs["ScaleTensor"] = {Values({1}, {-2.5})};
  tensor.gradients = {"X"};
  cases.push_back(tensor);
  for (const auto& [name, x] : SelectedRowsOfAllKinds()) {
    OpCase rows = UnaryCase(name, "scale", x, [](double value) { return -2.5 * value; });
    rows.attrs = {{"scale", -2.5f}};
    cases.push_back(rows);
  }
  // Both numbers are truncated to integers: 3 and -1.
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    OpCase integers =
        UnaryCase(std::string(DTypeName(dtype)), "scale", Integers({5, 7}, 24, -90, 90, dtype),
                  [](double x) { return 3 * x - 1; });
    integers.attrs = {{"scale", 3.5f}, {"bias", -1.5f}};
    cases.push_back(integers);
  }
}

}  // namespace skiff::harness
