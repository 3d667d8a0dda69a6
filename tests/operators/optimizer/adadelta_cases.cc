#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
UpdateCase Adadelta(const std::string& name, double rho = 0.875, double epsilon = 0x1.0p-10) {
  return {.name = name,
          .type = "adadelta",
          .states = {{.input = "AvgSquaredGrad", .output = "AvgSquaredGradOut", .low = 0.01},
                     {.input = "AvgSquaredUpdate", .output = "AvgSquaredUpdateOut", .low = 0.01}},
          .attrs = {{"rho", static_cast<float>(rho)}, {"epsilon", static_cast<float>(epsilon)}},
          .update = [rho, epsilon](UpdatedParameter& p) {
            for (size_t i = 0; i < p.param.size(); ++i) {
              double& mean_g = p.states[0][i];
              double& mean_x = p.states[1][i];
              mean_g = rho * mean_g + (1 - rho) * p.grad[i] * p.grad[i];
              const double delta =
                  -std::sqrt(mean_x + epsilon) / std::sqrt(mean_g + epsilon) * p.grad[i];
              mean_x = rho * mean_x + (1 - rho) * delta * delta;
              p.param[i] += p.rate * delta;
            }
          }};
}

}  // namespace

void AddAdadeltaCases(CaseList& cases) {
  AddUpdateCases(cases, Adadelta("plain"));
  AddSparseCases(cases, Adadelta("plain"), false);
  cases.push_back(MakeUpdateCase(Adadelta("large_epsilon", 0.5, 0.5)));
  cases.push_back(MakeUpdateCase(Adadelta("no_epsilon", 0.5, 0)));
  cases.push_back(MakeUpdateCase(Adadelta("first_step")));
  for (const char* slot : {"AvgSquaredGrad", "AvgSquaredUpdate"}) {
    cases.back().inputs[slot] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  }
  cases.push_back(MakeUpdateCase(Adadelta("zero_gradient")));
  cases.back().inputs["Grad"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
}

}  // namespace skiff::harness
