#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct RmspropSettings {
  bool centered = false;
  double momentum = 0.875;
  double epsilon = 0x1.0p-10;
};

constexpr double kDecay = 0.9375;

void UpdateByRmsprop(UpdatedParameter& p, const RmspropSettings& settings) {
  for (size_t i = 0; i < p.param.size(); ++i) {
    double& square = p.states[0][i];
    double& moment = p.states[1][i];
    square = kDecay * square + (1 - kDecay) * p.grad[i] * p.grad[i];
    double variance = square;
    if (settings.centered) {
      double& mean = p.states[2][i];
      mean = kDecay * mean + (1 - kDecay) * p.grad[i];
      variance = std::max(square - mean * mean, 0.0);
    }
    moment =
        settings.momentum * moment + p.rate * p.grad[i] / std::sqrt(variance + settings.epsilon);
    p.param[i] -= moment;
  }
}

UpdateCase Rmsprop(const std::string& name, const RmspropSettings& settings = {}) {
  return {.name = name,
          .type = "rmsprop",
          .states = {{.input = "MeanSquare", .output = "MeanSquareOut", .low = 0.25},
                     {.input = "Moment", .output = "MomentOut"},
                     {.input = "MeanGrad", .output = "MeanGradOut", .low = -0.25, .high = 0.25}},
          .attrs = {{"centered", settings.centered},
                    {"decay", static_cast<float>(kDecay)},
                    {"momentum", static_cast<float>(settings.momentum)},
                    {"epsilon", static_cast<float>(settings.epsilon)}},
          .update = [settings](UpdatedParameter& p) { UpdateByRmsprop(p, settings); }};
}

}  // namespace

void AddRmspropCases(CaseList& cases) {
  AddUpdateCases(cases, Rmsprop("plain"));
  AddUpdateCases(cases, Rmsprop("centered", {.centered = true}));
  AddSparseCases(cases, Rmsprop("centered", {.centered = true}), false);
  cases.push_back(MakeUpdateCase(Rmsprop("no_momentum", {.momentum = 0})));
  cases.push_back(MakeUpdateCase(Rmsprop("no_epsilon", {.epsilon = 0})));
  cases.push_back(MakeUpdateCase(Rmsprop("centered_no_epsilon", {.centered = true, .epsilon = 0})));
  cases.push_back(MakeUpdateCase(Rmsprop("zero_gradient")));
  cases.back().inputs["Grad"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  // If gradients stay the same, the variance consists of rounding errors only.
  cases.push_back(MakeUpdateCase(Rmsprop("centered_negative_variance", {.centered = true})));
  cases.back().inputs["MeanGrad"] = {Uniform({5, 7}, 9, 1.5, 2.0)};
}

}  // namespace skiff::harness
