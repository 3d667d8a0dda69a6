#include <cmath>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays SmoothL1LossReference(const Arrays& inputs, double sigma) {
  const Array& x = inputs.at("X")[0];
  const bool weighted = inputs.count("InsideWeight") > 0;
  Array diff = x;
  const auto rows = static_cast<size_t>(x.shape[0]);
  std::vector<double> losses(rows, 0.0);
  for (size_t i = 0; i < x.values.size(); ++i) {
    double d = x.values[i] - inputs.at("Y")[0].values[i];
    if (weighted) d *= inputs.at("InsideWeight")[0].values[i];
    const bool is_near = std::abs(d) < 1 / (sigma * sigma);
    const double loss = is_near ? sigma * sigma * d * d / 2 : std::abs(d) - 0.5 / (sigma * sigma);
    losses[i / (x.values.size() / rows)] +=
        weighted ? loss * inputs.at("OutsideWeight")[0].values[i] : loss;
    diff.values[i] = d;
  }
  return {{"Diff", {diff}}, {"Out", {Values({x.shape[0], 1}, losses)}}};
}

OpCase SmoothL1LossCase(const std::string& name, const Shape& shape, float sigma, bool weighted) {
  OpCase result{
      .name = name,
      .type = "smooth_l1_loss",
      .inputs = {{"X", {Uniform(shape, 1, -2, 2)}}, {"Y", {Uniform(shape, 2, -2, 2)}}},
      .reference = [sigma](const Arrays& inputs) { return SmoothL1LossReference(inputs, sigma); },
      .outputs = {{"Out", 1}, {"Diff", 1}},
      .gradients = {"X", "Y"}};
  result.accepted_wrong_inputs = {{"Diff", "other dims", "nothing but Diff tells the dims of X"},
                                  {"Diff", "other rank", "nothing but Diff tells the dims of X"}};
  if (weighted) {
    result.inputs["InsideWeight"] = {Uniform(shape, 3, 0, 2)};
    result.inputs["OutsideWeight"] = {Uniform(shape, 4, -1, 2)};
  }
  if (sigma != 1) result.attrs = {{"sigma", sigma}};
  return result;
}

}  // namespace

void AddSmoothL1LossCases(CaseList& cases) {
  cases.push_back(SmoothL1LossCase("matrix", {6, 5}, 1, false));
  cases.push_back(SmoothL1LossCase("column", {7, 1}, 1, false));
  cases.push_back(SmoothL1LossCase("one_row", {1, 33}, 1, false));
  cases.push_back(SmoothL1LossCase("rank_4", {2, 3, 4, 5}, 2, false));
  cases.push_back(SmoothL1LossCase("flat_sigma", {6, 5}, 0.5f, false));
  cases.push_back(SmoothL1LossCase("weights", {6, 5}, 1, true));
  cases.push_back(SmoothL1LossCase("weights_and_sigma", {3, 4, 5}, 3, true));
  cases.push_back(SmoothL1LossCase("no_rows", {0, 5}, 1, true));
  // Rows of one element, more than are computed at once; groups of short rows, of which the last
  // group is smaller; and rows that are longer than what is computed at once.
  cases.push_back(SmoothL1LossCase("weighted_column", {1100, 1}, 1, true));
  cases.push_back(SmoothL1LossCase("short_rows", {517, 4}, 1, true));
  cases.push_back(SmoothL1LossCase("long_rows", {2, 2500}, 1, true));
  OpCase threads = SmoothL1LossCase("several_threads", {301, 257}, 1, true);
  threads.gradients.clear();
  cases.push_back(std::move(threads));
  OpCase large = SmoothL1LossCase("4M_elements", {1024, 4096}, 1, false);
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
