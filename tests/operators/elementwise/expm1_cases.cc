#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

// The gradient op at values of Out that the other cases leave out.
OpCase Expm1GradientCase(const std::string& name, const std::vector<double>& at) {
  const auto count = static_cast<int64_t>(at.size());
  return {.name = name,
          .type = "expm1_grad",
          .inputs = {{"Out", {Values({count}, at)}},
                     {"Out@GRAD", {Values({count}, std::vector<double>(at.size(), 0.5))}}},
          .reference =
              [](const Arrays& inputs) {
                Array dx = inputs.at("Out")[0];
                for (double& value : dx.values) value = 0.5 * (value + 1);
                return Arrays{{"X@GRAD", {dx}}};
              },
          .outputs = {{"X@GRAD", 1}}};
}

}  // namespace

void AddExpm1Cases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::expm1(x); };
  AddUnaryCases("expm1", f, -4, 3, {}, {}, cases);
  cases.push_back(UnaryCase("small", "expm1", Values({4}, {1e-30, -1e-10, 1e-4, -1e-3}), f));
  cases.push_back(
      UnaryCase("edges", "expm1",
                Values({9}, {INFINITY, -INFINITY, NAN, -0.0, 88, -20, -110, -1000, 1e-38}), f));
  cases.push_back(
      Expm1GradientCase("gradient_at_edges", {-1, INFINITY, NAN, 0, 1e30, -0.5, 3e38, 1e-30}));
}

}  // namespace skiff::harness
