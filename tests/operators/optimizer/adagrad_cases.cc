#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
UpdateCase Adagrad(const std::string& name, double epsilon = 0x1.0p-10) {
  return {.name = name,
          .type = "adagrad",
          .states = {{.input = "Moment", .output = "MomentOut", .low = 0.01}},
          .attrs = {{"epsilon", static_cast<float>(epsilon)}},
          .update = [epsilon](UpdatedParameter& p) {
            for (size_t i = 0; i < p.param.size(); ++i) {
              double& sum = p.states[0][i];
              sum += p.grad[i] * p.grad[i];
              p.param[i] -= p.rate * p.grad[i] / (std::sqrt(sum) + epsilon);
            }
          }};
}

UpdateCase DecayedAdagrad(const std::string& name, double decay, double epsilon = 0x1.0p-10) {
  return {.name = name,
          .type = "decayed_adagrad",
          .states = {{.input = "Moment", .output = "MomentOut", .low = 0.01}},
          .attrs = {{"decay", static_cast<float>(decay)}, {"epsilon", static_cast<float>(epsilon)}},
          .update = [decay, epsilon](UpdatedParameter& p) {
            for (size_t i = 0; i < p.param.size(); ++i) {
              double& mean = p.states[0][i];
              mean = decay * mean + (1 - decay) * p.grad[i] * p.grad[i];
              p.param[i] -= p.rate * p.grad[i] / (std::sqrt(mean) + epsilon);
            }
          }};
}

}  // namespace

void AddAdagradCases(CaseList& cases) {
  AddUpdateCases(cases, Adagrad("plain"));
  AddUpdateCases(cases, DecayedAdagrad("plain", 0.875));
  AddSparseCases(cases, Adagrad("plain"), true);
  AddSparseCases(cases, DecayedAdagrad("plain", 0.875), false);
  cases.push_back(MakeUpdateCase(Adagrad("large_epsilon", 0.5)));
  cases.push_back(MakeUpdateCase(Adagrad("no_epsilon", 0)));
  cases.push_back(MakeUpdateCase(Adagrad("first_step_without_gradient")));
  cases.back().inputs["Moment"] =
      cases.back().inputs["Grad"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  cases.push_back(MakeUpdateCase(DecayedAdagrad("decay_zero", 0)));
  cases.push_back(MakeUpdateCase(DecayedAdagrad("no_epsilon", 0.5, 0)));
}

}  // namespace skiff::harness
