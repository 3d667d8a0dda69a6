#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays BceLossReference(const Arrays& inputs) {
  const Array& p = inputs.at("X")[0];
  Array out = p;
  for (size_t i = 0; i < p.values.size(); ++i) {
    const double label = inputs.at("Label")[0].values[i];
    out.values[i] = -label * std::max(std::log(p.values[i]), -100.0) -
                    (1 - label) * std::max(std::log1p(-p.values[i]), -100.0);
  }
  return {{"Out", {out}}};
}

OpCase BceLossCase(const std::string& name, Array x, Array label) {
  OpCase result{.name = name,
                .type = "bce_loss",
                .inputs = {{"X", {std::move(x)}}, {"Label", {std::move(label)}}},
                .reference = BceLossReference,
                .outputs = {{"Out", 1}}};
  return result;
}

}  // namespace

void AddBceLossCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& shape, const Array& label) {
    cases.push_back(BceLossCase(name, Uniform(shape, 1, 0.05, 0.95), label));
    cases.back().gradients = {"X"};
  };
  add("column", {4, 1}, Values({4, 1}, {0, 1, 1, 0}));
  add("rank_0", Shape(), Uniform(Shape(), 2, 0, 1));
  add("vector", {37}, Uniform({37}, 3, 0, 1));
  add("image", {2, 3, 5, 7}, Uniform({2, 3, 5, 7}, 4, 0, 1));
  add("no_elements", {4, 0}, Uniform({4, 0}, 5, 0, 1));
  // Wrong with certainty costs 100, right with certainty nothing.
  cases.push_back(
      BceLossCase("certain", Values({2, 2}, {0, 0, 1, 1}), Values({2, 2}, {0, 1, 0, 1})));
  // 1 - X is 1 in float32 for the first two.
  cases.push_back(BceLossCase("almost_certain", Values({4}, {1e-30, 1e-9, 1e-6, 1e-3}),
                              Values({4}, {0, 0, 0, 0})));
  cases.push_back({.name = "gradient_at_certainty",
                   .type = "bce_loss_grad",
                   .inputs = {{"X", {Values({3}, {0, 1, 0})}},
                              {"Label", {Values({3}, {0, 1, 1})}},
                              {"Out@GRAD", {Values({3}, {2, 2, 1e-12f})}}},
                   .reference =
                       [](const Arrays&) {
                         return Arrays{{"X@GRAD", {Values({3}, {0, 0, -1})}}};
                       },
                   .outputs = {{"X@GRAD", 1}}});
  cases.push_back(
      BceLossCase("several_threads", Uniform({9001}, 6, 0, 1), Uniform({9001}, 7, 0, 1)));
  cases.push_back(
      BceLossCase("mnist_batch", Uniform({1024, 784}, 8, 0, 1), Uniform({1024, 784}, 9, 0, 1)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
