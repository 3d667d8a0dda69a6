#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
constexpr double kBeta1 = 0.875;
constexpr double kBeta2 = 0.75;

// `power_out`: the output that is the next power, if it is connected.
UpdateCase Adamax(const std::string& name, double epsilon = 0x1.0p-20,
                  const std::string& power_out = "") {
  return {.name = name,
          .type = "adamax",
          .states = {{.input = "Moment", .output = "MomentOut"},
                     {.input = "InfNorm", .output = "InfNormOut", .low = 0.125}},
          .scalars = {{.input = "Beta1Pow", .output = power_out, .value = 0.765625}},
          .attrs = {{"beta1", static_cast<float>(kBeta1)},
                    {"beta2", static_cast<float>(kBeta2)},
                    {"epsilon", static_cast<float>(epsilon)}},
          .update = [epsilon, power_out](UpdatedParameter& p) {
            for (size_t i = 0; i < p.param.size(); ++i) {
              double& m = p.states[0][i];
              double& u = p.states[1][i];
              m = kBeta1 * m + (1 - kBeta1) * p.grad[i];
              u = std::max(std::abs(p.grad[i]), kBeta2 * u + epsilon);
              p.param[i] -= p.rate / (1 - p.scalars[0]) * m / u;
            }
            if (!power_out.empty()) p.scalars[0] *= kBeta1;
          }};
}

}  // namespace

void AddAdamaxCases(CaseList& cases) {
  AddUpdateCases(cases, Adamax("plain"));
  AddUpdateCases(cases, Adamax("power", 0x1.0p-20, "Beta1PowOut"));
  AddSparseCases(cases, Adamax("plain"), false);
  cases.push_back(MakeUpdateCase(Adamax("large_epsilon", 0.5)));
  cases.push_back(MakeUpdateCase(Adamax("no_epsilon", 0)));
  cases.push_back(MakeUpdateCase(Adamax("first_step_without_gradient")));
  for (const char* slot : {"Moment", "InfNorm", "Grad"}) {
    cases.back().inputs[slot] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  }
}

}  // namespace skiff::harness
