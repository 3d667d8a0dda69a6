#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

double Exact(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }

double Approximate(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

OpCase BiasGeluCase(const std::string& name, const Shape& x, bool approximate) {
  OpCase op_case;
  op_case.name = (approximate ? "approximate_" : "") + name;
  op_case.type = "bias_gelu";
  op_case.inputs = {{"X", {Uniform(x, 1, -4, 4)}}, {"Bias", {Uniform({x[x.rank() - 1]}, 2)}}};
  op_case.attrs = {{"approximate", approximate}};
  op_case.reference = [approximate](const Arrays& inputs) {
    Array out = inputs.at("X")[0];
    const std::vector<double>& bias = inputs.at("Bias")[0].values;
    for (size_t i = 0; i < out.values.size(); ++i) {
      const double biased = out.values[i] + bias[i % bias.size()];
      out.values[i] = approximate ? Approximate(biased) : Exact(biased);
    }
    return Arrays{{"Out", {out}}};
  };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X", "Bias"};
  return op_case;
}

}  // namespace

void AddBiasGeluCases(CaseList& cases) {
  for (const bool approximate : {false, true}) {
    const auto add = [&](const std::string& name, const Shape& x) {
      cases.push_back(BiasGeluCase(name, x, approximate));
    };
    add("rows", {7, 16});
    add("tokens", {2, 3, 37});
    add("one_dim", {5});
    add("one_element", {1, 1});
    add("rows_of_1", {5, 1});
    add("several_parts", {70, 9});
    add("no_rows", {0, 5});
    add("empty_rows", {3, 0});
    add("tokens_2048x1024", {16, 128, 1024});
    cases.back().benchmark_only = true;
  }
  // In every lane of a vector, and behind the last whole vector.
  const double infinity = std::numeric_limits<double>::infinity();
  OpCase special = BiasGeluCase("infinite", {2, 35}, false);
  for (size_t i = 0; i < 70; i += 3) special.inputs["X"][0].values[i] = infinity;
  special.gradients = {};
  cases.push_back(special);
}

}  // namespace skiff::harness
