#include <algorithm>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays MarginRankLossReference(const Arrays& inputs, double margin) {
  const Array& label = inputs.at("Label")[0];
  Array out = label;
  Array activated = label;
  for (size_t i = 0; i < label.values.size(); ++i) {
    const double lead = inputs.at("X1")[0].values[i] - inputs.at("X2")[0].values[i];
    out.values[i] = std::max(0.0, margin - label.values[i] * lead);
    activated.values[i] = out.values[i] > 0 ? 1 : 0;
  }
  return {{"Out", {out}}, {"Activated", {activated}}};
}

OpCase MarginRankLossCase(const std::string& name, int64_t rows, float margin) {
  Array label = Integers({rows, 1}, 3, 0, 2, DType::kFloat32);
  for (double& value : label.values) value = 2 * value - 1;
  label.fixed_dtype = false;
  OpCase result{
      .name = name,
      .type = "margin_rank_loss",
      .inputs = {{"X1", {Uniform({rows, 1}, 1, -1, 1)}},
                 {"X2", {Uniform({rows, 1}, 2, -1, 1)}},
                 {"Label", {std::move(label)}}},
      .reference =
          [margin](const Arrays& inputs) { return MarginRankLossReference(inputs, margin); },
      .outputs = {{"Out", 1}, {"Activated", 1}},
      .gradients = {"X1", "X2"}};
  if (margin != 0) result.attrs = {{"margin", margin}};
  return result;
}

}  // namespace

void AddMarginRankLossCases(CaseList& cases) {
  cases.push_back(MarginRankLossCase("without_margin", 9, 0));
  cases.push_back(MarginRankLossCase("margin", 37, 0.25f));
  cases.push_back(MarginRankLossCase("no_rows", 0, 0.25f));
  OpCase threads = MarginRankLossCase("several_threads", 70003, 0.25f);
  threads.gradients.clear();
  cases.push_back(std::move(threads));
}

}  // namespace skiff::harness
