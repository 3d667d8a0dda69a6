#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

// The gradient op at values of X that the other cases leave out.
OpCase Log1pGradientCase(const std::string& name, const std::vector<double>& at) {
  const auto count = static_cast<int64_t>(at.size());
  return {.name = name,
          .type = "log1p_grad",
          .inputs = {{"X", {Values({count}, at)}},
                     {"Out@GRAD", {Values({count}, std::vector<double>(at.size(), 0.5))}}},
          .reference =
              [](const Arrays& inputs) {
                Array dx = inputs.at("X")[0];
                for (double& value : dx.values) value = 0.5 / (1 + value);
                return Arrays{{"X@GRAD", {dx}}};
              },
          .outputs = {{"X@GRAD", 1}}};
}

}  // namespace

void AddLog1pCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::log1p(x); };
  AddUnaryCases("log1p", f, -0.9, 9, {}, {}, cases);
  cases.push_back(UnaryCase("small", "log1p", Values({4}, {1e-30, -1e-10, 1e-4, -1e-3}), f));
  cases.push_back(UnaryCase(
      "edges", "log1p",
      Values({10}, {-1, -1.5, -1e30, INFINITY, -INFINITY, NAN, -0.0, 3e38, -0.9375, 1e-38}), f));
  cases.push_back(Log1pGradientCase("gradient_at_edges",
                                    {-1, -2, INFINITY, -INFINITY, NAN, 3e38, -0.9375, 1e-30}));
}

}  // namespace skiff::harness
