#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLogicalNotCases(CaseList& cases) {
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt32, DType::kInt64,
                            DType::kFloat32, DType::kFloat64}) {
    OpCase one = UnaryCase(std::string(DTypeName(dtype)), "logical_not",
                           Integers({5, 7}, 1, 0, 2, dtype), {});
    one.reference = [](const Arrays& inputs) {
      const Array& x = inputs.at("X")[0];
      std::vector<double> values;
      for (const double value : x.values) values.push_back(value == 0 ? 1 : 0);
      return Arrays{{"Out", {Values(x.shape, values, DType::kBool)}}};
    };
    cases.push_back(one);
  }
}

}  // namespace skiff::harness
