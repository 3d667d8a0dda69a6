#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct Settings {
  double coeff = 0.0625;
  double lr_ratio = 1;
  bool with_decay = true;
  bool global_pow = false;
};

constexpr double kBeta1 = 0.875;
constexpr double kBeta2 = 0.96875;
constexpr double kEpsilon = 0x1.0p-10;

// The textbook's form: the parameter decays by itself, then moves by Adam's step.
void Update(UpdatedParameter& p, const Settings& settings) {
  const double rate = p.rate * settings.lr_ratio;
  for (size_t i = 0; i < p.param.size(); ++i) {
    const double g = p.grad[i];
    double& m = p.states[0][i];
    double& v = p.states[1][i];
    m = kBeta1 * m + (1 - kBeta1) * g;
    v = kBeta2 * v + (1 - kBeta2) * g * g;
    const double unbiased_m = m / (1 - p.scalars[0]);
    const double unbiased_v = v / (1 - p.scalars[1]);
    const double decay = settings.with_decay ? settings.coeff * p.param[i] : 0;
    p.param[i] -= rate * (unbiased_m / (std::sqrt(unbiased_v) + kEpsilon) + decay);
  }
  if (settings.global_pow) return;
  p.scalars[0] *= kBeta1;
  p.scalars[1] *= kBeta2;
}

UpdateCase Adamw(const std::string& name, const Settings& settings = {}) {
  return {.name = name,
          .type = "adamw",
          .states = {{.input = "Moment1", .output = "Moment1Out"},
                     {.input = "Moment2", .output = "Moment2Out", .low = 0.01}},
          .scalars = {{.input = "Beta1Pow", .output = "Beta1PowOut", .value = 0.765625},
                      {.input = "Beta2Pow", .output = "Beta2PowOut", .value = 0.9375}},
          .attrs = {{"beta1", static_cast<float>(kBeta1)},
                    {"beta2", static_cast<float>(kBeta2)},
                    {"epsilon", static_cast<float>(kEpsilon)},
                    {"coeff", static_cast<float>(settings.coeff)},
                    {"lr_ratio", static_cast<float>(settings.lr_ratio)},
                    {"with_decay", settings.with_decay},
                    {"use_global_beta_pow", settings.global_pow}},
          .update = [settings](UpdatedParameter& p) { Update(p, settings); }};
}

}  // namespace

void AddAdamwCases(CaseList& cases) {
  AddUpdateCases(cases, Adamw("plain"));
  AddSparseCases(cases, Adamw("plain"), false);
  UpdateCase lazy = Adamw("lazy");
  lazy.attrs["lazy_mode"] = true;
  AddSparseCases(cases, lazy, true);
  cases.push_back(MakeUpdateCase(Adamw("without_decay", {.with_decay = false})));
  cases.push_back(MakeUpdateCase(Adamw("no_decay", {.coeff = 0})));
  cases.push_back(MakeUpdateCase(Adamw("lr_ratio", {.lr_ratio = 0.25})));
  cases.push_back(
      MakeUpdateCase(Adamw("lr_ratio_without_decay", {.lr_ratio = 0.25, .with_decay = false})));
  cases.push_back(MakeUpdateCase(Adamw("global_powers", {.global_pow = true})));
  cases.push_back(MakeUpdateCase(Adamw("zero_gradient")));
  cases.back().inputs["Grad"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  cases.push_back(MakeUpdateCase(Adamw("coefficients_from_tensors")));
  cases.back().attrs["beta1"] = cases.back().attrs["beta2"] = 0.5f;
  cases.back().attrs["epsilon"] = 0.5f;
  cases.back().inputs["Beta1Tensor"] = {Values({1}, {kBeta1}, DType::kFloat32)};
  cases.back().inputs["Beta2Tensor"] = {Values({1}, {kBeta2}, DType::kFloat32)};
  cases.back().inputs["EpsilonTensor"] = {Values({1}, {kEpsilon}, DType::kFloat32)};

  UpdateCase words = Adamw("bert_words");
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
