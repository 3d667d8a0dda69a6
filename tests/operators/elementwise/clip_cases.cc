#include <algorithm>
#include <cmath>

#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

// The sum of the slots of each row where the row occurs first; the others are unused.
Arrays ClippedRows(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array dense = Dense(x);
  Array out = x;
  const auto width = static_cast<size_t>(dense.shape.element_count(1, dense.shape.rank()));
  for (size_t slot = 0; slot < x.rows.size(); ++slot) {
    const bool is_first = std::find(x.rows.begin(), x.rows.end(), x.rows[slot]) - x.rows.begin() ==
                          static_cast<std::ptrdiff_t>(slot);
    if (x.rows[slot] < 0 || !is_first) out.rows[slot] = -1;
    for (size_t i = 0; i < width; ++i) {
      double& value = out.values[slot * width + i];
      const size_t in_dense = static_cast<size_t>(std::max<int64_t>(out.rows[slot], 0)) * width + i;
      value = out.rows[slot] < 0 ? 0 : std::clamp(dense.values[in_dense], -0.5, 0.25);
    }
  }
  return {{"Out", {out}}};
}

}  // namespace

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
  // The attributes are not read if the tensors are present.
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
  auto kinds = SelectedRowsOfAllKinds();
  kinds.push_back(CrowdedSelectedRows());
  for (const auto& [name, x] : kinds) {
    cases.push_back({.name = name,
                     .type = "clip",
                     .inputs = {{"X", {x}}},
                     .attrs = {{"min", -0.5f}, {"max", 0.25f}},
                     .reference = ClippedRows,
                     .outputs = {{"Out", 1}}});
  }
  OpCase rows_and_tensor = cases.back();
  rows_and_tensor.name = "selected_rows_and_bound_in_tensor";
  rows_and_tensor.inputs["Max"] = {Values({1}, {0.25})};
  rows_and_tensor.attrs["max"] = 9.0f;
  cases.push_back(rows_and_tensor);
}

}  // namespace skiff::harness
