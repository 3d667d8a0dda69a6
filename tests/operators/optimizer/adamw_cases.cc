#include "tests/operators/optimizer/adam_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct AdamwSettings {
  AdamSettings adam = kCoarseAdam;
  double coeff = 0.0625;
  double lr_ratio = 1;
  bool with_decay = true;
};

// The textbook's form: the parameter decays first, then moves by Adam's step.
void UpdateByAdamw(UpdatedParameter& p, const AdamwSettings& settings) {
  for (size_t i = 0; i < p.param.size(); ++i) {
    const double decay = settings.with_decay ? settings.coeff * p.param[i] : 0;
    p.param[i] -= p.rate * settings.lr_ratio * (AdamStep(p, i, settings.adam) + decay);
  }
  AdvancePowers(p, settings.adam);
}

UpdateCase Adamw(const std::string& name, const AdamwSettings& settings = {}) {
  return AdamCase(name, "adamw", settings.adam,
                  {{"coeff", static_cast<float>(settings.coeff)},
                   {"lr_ratio", static_cast<float>(settings.lr_ratio)},
                   {"with_decay", settings.with_decay}},
                  [settings](UpdatedParameter& p) { UpdateByAdamw(p, settings); });
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
  cases.push_back(MakeUpdateCase(
      Adamw("global_powers", {.adam = {.epsilon = kCoarseAdam.epsilon, .global_pow = true}})));
  cases.push_back(MakeUpdateCase(Adamw("zero_gradient")));
  cases.back().inputs["Grad"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  cases.push_back(MakeUpdateCase(Adamw("coefficients_from_tensors")));
  cases.back().attrs["beta1"] = cases.back().attrs["beta2"] = 0.5f;
  cases.back().attrs["epsilon"] = 0.5f;
  cases.back().inputs["Beta1Tensor"] = {Values({1}, {kCoarseAdam.beta1}, DType::kFloat32)};
  cases.back().inputs["Beta2Tensor"] = {Values({1}, {kCoarseAdam.beta2}, DType::kFloat32)};
  cases.back().inputs["EpsilonTensor"] = {Values({1}, {kCoarseAdam.epsilon}, DType::kFloat32)};

  UpdateCase words = Adamw("bert_words");
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
