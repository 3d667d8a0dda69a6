#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

struct Settings {
  double beta1 = 0.875;
  double beta2 = 0.96875;
  double epsilon = 0x1.0p-20;
  bool global_pow = false;
};

// The textbook's form: moments freed of their bias, then the quotient.
void Update(UpdatedParameter& p, const Settings& settings) {
  for (size_t i = 0; i < p.param.size(); ++i) {
    const double g = p.grad[i];
    double& m = p.states[0][i];
    double& v = p.states[1][i];
    m = settings.beta1 * m + (1 - settings.beta1) * g;
    v = settings.beta2 * v + (1 - settings.beta2) * g * g;
    const double unbiased_m = m / (1 - p.scalars[0]);
    const double unbiased_v = v / (1 - p.scalars[1]);
    p.param[i] -= p.rate * unbiased_m / (std::sqrt(unbiased_v) + settings.epsilon);
  }
  if (settings.global_pow) return;
  p.scalars[0] *= settings.beta1;
  p.scalars[1] *= settings.beta2;
}

// The settings are exact in float32, as the attributes are floats.
UpdateCase Adam(const std::string& name, const Settings& settings = {},
                const std::string& type = "adam") {
  return {.name = name,
          .type = type,
          .states = {{.input = "Moment1", .output = "Moment1Out"},
                     {.input = "Moment2", .output = "Moment2Out", .low = 0.01}},
          .scalars = {{.input = "Beta1Pow", .output = "Beta1PowOut", .value = 0.765625},
                      {.input = "Beta2Pow", .output = "Beta2PowOut", .value = 0.9375}},
          .attrs = {{"beta1", static_cast<float>(settings.beta1)},
                    {"beta2", static_cast<float>(settings.beta2)},
                    {"epsilon", static_cast<float>(settings.epsilon)},
                    {"use_global_beta_pow", settings.global_pow}},
          .update = [settings](UpdatedParameter& p) { Update(p, settings); }};
}

}  // namespace

void AddAdamCases(CaseList& cases) {
  AddUpdateCases(cases, Adam("plain"));
  AddUpdateCases(cases, Adam("merged", {}, "merged_adam"));
  AddSparseCases(cases, Adam("plain"), false);
  AddSparseCases(cases, Adam("merged", {}, "merged_adam"), false);
  UpdateCase lazy = Adam("lazy");
  lazy.attrs["lazy_mode"] = true;
  AddSparseCases(cases, lazy, true);
  cases.push_back(MakeUpdateCase(Adam("large_epsilon", {.epsilon = 0.5})));
  cases.push_back(MakeUpdateCase(Adam("global_powers", {.global_pow = true})));
  cases.push_back(MakeUpdateCase(Adam("lazy_mode")));
  cases.back().attrs["lazy_mode"] = true;
  cases.push_back(MakeUpdateCase(Adam("first_step")));
  cases.back().inputs["Beta1Pow"] = {Values({1}, {0.875})};
  cases.back().inputs["Beta2Pow"] = {Values({1}, {0.96875})};
  cases.push_back(MakeUpdateCase(Adam("scalar_powers")));
  cases.back().inputs["Beta1Pow"] = {Values(Shape(), {0.765625})};
  cases.back().inputs["Beta2Pow"] = {Values(Shape(), {0.9375}, DType::kFloat32)};
  cases.push_back(MakeUpdateCase(
      Adam("coefficients_from_tensors", {.beta1 = 0.75, .beta2 = 0.875, .epsilon = 0.25})));
  cases.back().attrs = {{"beta1", 0.5f}, {"beta2", 0.5f}, {"epsilon", 0.5f}};
  cases.back().inputs["Beta1Tensor"] = {Values({1}, {0.75}, DType::kFloat32)};
  cases.back().inputs["Beta2Tensor"] = {Values({1}, {0.875}, DType::kFloat32)};
  cases.back().inputs["EpsilonTensor"] = {Values({1}, {0.25})};

  UpdateCase words = Adam("bert_words");
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
