#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLessThanCases(CaseList& cases) {
  AddBoolCases(
      "less_than", [](double x, double y) { return x < y ? 1.0 : 0.0; }, cases);
  OpCase at_axis =
      BinaryCase("axis", "less_than", Integers({2, 3, 4}, 31, 0, 3), Integers({3}, 32, 0, 3), 1,
                 [](double x, double y) { return x < y ? 1.0 : 0.0; });
  at_axis.reference = [numbers = at_axis.reference](const Arrays& inputs) {
    Array out = numbers(inputs).at("Out")[0];
    out.dtype = DType::kBool;
    return Arrays{{"Out", {out}}};
  };
  at_axis.attrs["force_cpu"] = true;
  cases.push_back(at_axis);
}

}  // namespace skiff::harness
