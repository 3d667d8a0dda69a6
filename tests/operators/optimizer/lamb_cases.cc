#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct Settings {
  double decay = 0.0625;
  bool always_adapt = false;
};

constexpr double kBeta1 = 0.875;
constexpr double kBeta2 = 0.96875;
constexpr double kEpsilon = 0x1.0p-10;

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

void Update(UpdatedParameter& p, const Settings& settings) {
  std::vector<double> step;
  for (size_t i = 0; i < p.param.size(); ++i) {
    const double g = p.grad[i];
    double& m = p.states[0][i];
    double& v = p.states[1][i];
    m = kBeta1 * m + (1 - kBeta1) * g;
    v = kBeta2 * v + (1 - kBeta2) * g * g;
    const double unbiased_m = m / (1 - p.scalars[0]);
    const double unbiased_v = v / (1 - p.scalars[1]);
    step.push_back(unbiased_m / (std::sqrt(unbiased_v) + kEpsilon) + settings.decay * p.param[i]);
  }
  double ratio = 1;
  if (settings.decay > 0 || settings.always_adapt) {
    const double param_norm = Norm(p.param);
    const double step_norm = Norm(step);
    if (param_norm > 0 && step_norm > 0) ratio = param_norm / step_norm;
  }
  for (size_t i = 0; i < p.param.size(); ++i) p.param[i] -= p.rate * ratio * step[i];
  p.scalars[0] *= kBeta1;
  p.scalars[1] *= kBeta2;
}

UpdateCase Lamb(const std::string& name, const Settings& settings = {}) {
  return {.name = name,
          .type = "lamb",
          .states = {{.input = "Moment1", .output = "Moment1Out"},
                     {.input = "Moment2", .output = "Moment2Out", .low = 0.01}},
          .scalars = {{.input = "Beta1Pow", .output = "Beta1PowOut", .value = 0.765625},
                      {.input = "Beta2Pow", .output = "Beta2PowOut", .value = 0.9375}},
          .attrs = {{"beta1", static_cast<float>(kBeta1)},
                    {"beta2", static_cast<float>(kBeta2)},
                    {"epsilon", static_cast<float>(kEpsilon)},
                    {"weight_decay", static_cast<float>(settings.decay)},
                    {"always_adapt", settings.always_adapt}},
          .update = [settings](UpdatedParameter& p) { Update(p, settings); }};
}

Array Zeros() { return Values({5, 7}, std::vector<double>(35, 0.0)); }

}  // namespace

void AddLambCases(CaseList& cases) {
  AddUpdateCases(cases, Lamb("plain"));
  AddSparseCases(cases, Lamb("plain"), false);
  AddUpdateCases(cases, Lamb("no_decay", {.decay = 0}));
  cases.push_back(MakeUpdateCase(Lamb("always_adapts", {.decay = 0, .always_adapt = true})));
  cases.push_back(MakeUpdateCase(Lamb("zero_param")));
  cases.back().inputs["Param"] = {Zeros()};
  cases.push_back(MakeUpdateCase(Lamb("zero_gradient")));
  cases.back().inputs["Grad"] = {Zeros()};
  cases.push_back(MakeUpdateCase(Lamb("zero_step", {.decay = 0, .always_adapt = true})));
  cases.back().inputs["Grad"] = cases.back().inputs["Moment1"] = {Zeros()};
  cases.push_back(MakeUpdateCase(Lamb("powers_unwanted")));
  std::erase_if(cases.back().outputs,
                [](const auto& output) { return output.first.find("Pow") != std::string::npos; });
  cases.back().reference = [all = cases.back().reference](const Arrays& inputs) {
    Arrays outputs = all(inputs);
    outputs.erase("Beta1PowOut");
    outputs.erase("Beta2PowOut");
    return outputs;
  };

  UpdateCase words = Lamb("bert_words");
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
