#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddClipCases(CaseList& cases) {
  // Bounds that float32 holds exactly.
  const UnaryFunction f = [](double x) { return x < -0.5 ? -0.5 : (x > 0.25 ? 0.25 : x); };
  AddUnaryCases("clip", f, -1, 1, {-0.5, 0.25}, {{"min", -0.5f}, {"max", 0.25f}}, cases);
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    OpCase integers =
        UnaryCase(std::string(DTypeName(dtype)), "clip", Integers({5, 7}, 9, -90, 90, dtype),
                  [](double x) { return x < -10 ? -10.0 : (x > 20 ? 20.0 : x); });
    integers.attrs = {{"min", -10.0f}, {"max", 20.0f}};
    cases.push_back(integers);
  }
  // The attributes are not read where the tensors are there.
  OpCase tensors =
      UnaryCase("bounds_in_tensors", "clip", UniformAwayFrom({3, 7}, 12, {-0.5, 0.25}), f);
  tensors.attrs = {{"min", 5.0f}, {"max", -5.0f}};
  tensors.inputs["Min"] = {Values({1}, {-0.5})};
  tensors.inputs["Max"] = {Values({1}, {0.25})};
  tensors.gradients = {"X"};
  cases.push_back(tensors);
  OpCase one_tensor =
      UnaryCase("upper_bound_in_tensor", "clip", UniformAwayFrom({3, 7}, 13, {-0.5, 0.25}), f);
  one_tensor.attrs = {{"min", -0.5f}, {"max", 9.0f}};
  one_tensor.inputs["Max"] = {Values({1}, {0.25})};
  one_tensor.gradients = {"X"};
  cases.push_back(one_tensor);
}

}  // namespace skiff::harness
