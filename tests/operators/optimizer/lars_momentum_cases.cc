#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct LarsMomentumSettings {
  std::vector<double> decays = {0.0625};
  double epsilon = 0;
  bool adapts_without_decay = false;
};

constexpr double kMu = 0.875;
constexpr double kCoeff = 0.25;

void UpdateByLarsMomentum(UpdatedParameter& p, const LarsMomentumSettings& settings) {
  const double decay = settings.decays.size() == 1 ? settings.decays[0] : settings.decays[p.index];
  const double param_norm = NormOf(p.param);
  const double grad_norm = NormOf(p.grad);
  double rate = p.rate;
  if (param_norm > 0 && grad_norm > 0 && (decay > 0 || settings.adapts_without_decay)) {
    rate *= kCoeff * param_norm / (grad_norm + decay * param_norm + settings.epsilon);
  }
  for (size_t i = 0; i < p.param.size(); ++i) {
    double& v = p.states[0][i];
    v = kMu * v + rate * (p.grad[i] + decay * p.param[i]);
    p.param[i] -= v;
  }
}

UpdateCase Lars(const std::string& name, const LarsMomentumSettings& settings = {}) {
  const std::vector<float> decays(settings.decays.begin(), settings.decays.end());
  const std::string policy = settings.adapts_without_decay ? "norms" : "decay_and_norms";
  return {.name = name,
          .type = "lars_momentum",
          .states = {{.input = "Velocity", .output = "VelocityOut"}},
          .attrs = {{"mu", static_cast<float>(kMu)},
                    {"lars_coeff", static_cast<float>(kCoeff)},
                    {"lars_weight_decay", decays},
                    {"epsilon", static_cast<float>(settings.epsilon)},
                    {"lars_policy", policy}},
          .update = [settings](UpdatedParameter& p) { UpdateByLarsMomentum(p, settings); }};
}

}  // namespace

void AddLarsMomentumCases(CaseList& cases) {
  AddUpdateCases(cases, Lars("plain"));
  AddSparseCases(cases, Lars("plain"), false);
  cases.push_back(MakeUpdateCase(Lars("epsilon", {.epsilon = 0.5})));
  cases.push_back(MakeUpdateCase(Lars("no_decay", {.decays = {0}})));
  cases.push_back(
      MakeUpdateCase(Lars("norms_without_decay", {.decays = {0}, .adapts_without_decay = true})));
  for (const bool adapts_without_decay : {false, true}) {
    UpdateCase decays = Lars(adapts_without_decay ? "norms_decays" : "decays",
                             {.decays = {0.0625, 0, 0.5, 0.25},
                              .epsilon = 0.125,
                              .adapts_without_decay = adapts_without_decay});
    decays.shapes = {{17}, {2, 5}, {0}, {40000}};
    cases.push_back(MakeUpdateCase(decays));
  }
  for (const std::string slot : {"Param", "Grad"}) {
    for (const bool adapts_without_decay : {false, true}) {
      const std::string policy = adapts_without_decay ? "_by_norms" : "";
      cases.push_back(MakeUpdateCase(
          Lars("zero_" + slot + policy, {.adapts_without_decay = adapts_without_decay})));
      cases.back().inputs[slot] = {Values({5, 7}, std::vector<double>(35, 0.0))};
    }
  }
  // Parameters that adapt beside such that don't: no decay, no parameter, no gradient, neither.
  for (const bool adapts_without_decay : {false, true}) {
    UpdateCase mixed = Lars(
        adapts_without_decay ? "mixed_by_norms" : "mixed",
        {.decays = {0.0625, 0, 0.25, 0.5, 0.125}, .adapts_without_decay = adapts_without_decay});
    mixed.shapes = {{4097}, {4097}, {9}, {9}, {9}};
    cases.push_back(MakeUpdateCase(mixed));
    const Array zeros = Values({9}, std::vector<double>(9, 0.0));
    Arrays& inputs = cases.back().inputs;
    inputs["Param"][2] = inputs["Grad"][3] = zeros;
    inputs["Param"][4] = inputs["Grad"][4] = zeros;
  }

  UpdateCase words = Lars("bert_words");
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
