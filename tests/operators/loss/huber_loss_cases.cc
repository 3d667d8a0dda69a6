#include <cmath>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays HuberLossReference(const Arrays& inputs, double delta) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  Array out = x;
  Array residual = x;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double r = y.values[i] - x.values[i];
    residual.values[i] = r;
    out.values[i] = std::abs(r) <= delta ? r * r / 2 : delta * (std::abs(r) - delta / 2);
  }
  return {{"Out", {out}}, {"Residual", {residual}}};
}

OpCase HuberLossCase(const std::string& name, const Shape& shape, float delta) {
  OpCase result{
      .name = name,
      .type = "huber_loss",
      .inputs = {{"X", {Uniform(shape, 1, -2, 2)}}, {"Y", {Uniform(shape, 2, -2, 2)}}},
      .attrs = {{"delta", delta}},
      .reference = [delta](const Arrays& inputs) { return HuberLossReference(inputs, delta); },
      .outputs = {{"Out", 1}, {"Residual", 1}},
      .gradients = {"X", "Y"}};
  return result;
}

}  // namespace

void AddHuberLossCases(CaseList& cases) {
  cases.push_back(HuberLossCase("column", {7, 1}, 1.0f));
  cases.push_back(HuberLossCase("vector", {5}, 1.0f));
  cases.push_back(HuberLossCase("rank_0", Shape(), 1.0f));
  cases.push_back(HuberLossCase("rank_3", {3, 5, 7}, 0.5f));
  cases.push_back(HuberLossCase("all_on_the_parabola", {3, 5}, 9.0f));
  cases.push_back(HuberLossCase("no_elements", {0, 1}, 1.0f));
  OpCase threads = HuberLossCase("several_threads", {70003}, 1.0f);
  threads.gradients.clear();
  cases.push_back(std::move(threads));
  OpCase large = HuberLossCase("4M_elements", {1024, 4096}, 1.0f);
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
