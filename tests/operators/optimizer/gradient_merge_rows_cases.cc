#include <utility>

#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/optimizer/gradient_merge_step.h"

namespace skiff::harness {
namespace {

Arrays Merged(const Arrays& inputs, const GradientMergeStep& step) {
  Array sums = inputs.at("Accumulated")[0];
  Array touched = inputs.at("Touched")[0];
  const Array& grad = inputs.at("Grad")[0];
  const auto height = static_cast<size_t>(grad.height);
  const size_t width = sums.values.size() / height;
  if (step.count == 1) touched.values.assign(height, 0);
  for (size_t slot = 0; slot < grad.rows.size(); ++slot) {
    if (grad.rows[slot] < 0) continue;
    const auto row = static_cast<size_t>(grad.rows[slot]);
    for (size_t i = 0; i < width; ++i) {
      double& sum = sums.values[row * width + i];
      sum = (touched.values[row] != 0 ? sum : 0) + grad.values[slot * width + i];
    }
    touched.values[row] = 1;
  }
  Array out = SelectedRows({.shape = sums.shape, .values = std::vector<double>(sums.values.size())},
                           std::vector<int64_t>(height, -1), grad.height);
  const double divisor = step.mean ? static_cast<double>(step.count) : 1;
  size_t slot = 0;
  for (size_t row = 0; row < height && step.count >= step.steps; ++row) {
    if (touched.values[row] == 0) continue;
    for (size_t i = 0; i < width; ++i) {
      out.values[slot * width + i] = sums.values[row * width + i] / divisor;
    }
    out.rows[slot++] = static_cast<int64_t>(row);
  }
  return {{"AccumulatedOut", {sums}}, {"TouchedOut", {touched}}, {"Out", {out}}};
}

OpCase MergeRows(const std::string& name, const Array& grad, const GradientMergeStep& step) {
  OpCase made{.name = name + "_" + step.name, .type = "gradient_merge_rows"};
  const Shape shape = Dense(grad).shape;
  std::vector<double> touched;
  for (int64_t row = 0; row < grad.height; ++row) touched.push_back(row % 3 == 1 ? 1.0 : 0.0);
  made.inputs = {{"Accumulated", {Uniform(shape, 1)}},
                 {"Touched", {Values({grad.height}, touched, DType::kBool)}},
                 {"Grad", {grad}},
                 {"Count", {Values({1}, {static_cast<double>(step.count)}, DType::kInt64)}}};
  made.attrs = {{"steps", step.steps}, {"mean", step.mean}};
  made.outputs = {{"AccumulatedOut", 1}, {"TouchedOut", 1}, {"Out", 1}};
  made.reference = [step](const Arrays& inputs) { return Merged(inputs, step); };
  return made;
}

}  // namespace

void AddGradientMergeRowsCases(CaseList& cases) {
  for (const auto& [kind, grad] : SelectedRowsOfAllKinds()) {
    for (const GradientMergeStep& step :
         {GradientMergeStep{.name = "first"}, GradientMergeStep{.name = "middle", .count = 2},
          GradientMergeStep{.name = "mean", .count = 4},
          GradientMergeStep{.name = "sum", .count = 4, .mean = false},
          GradientMergeStep{.name = "only", .steps = 1}}) {
      cases.push_back(MergeRows(kind, grad, step));
    }
  }
  const auto [kind, grad] = CrowdedSelectedRows();
  cases.push_back(MergeRows(kind, grad, {.name = "middle", .count = 2}));
}

}  // namespace skiff::harness
