#include "tests/operators/optimizer/adam_case.h"

namespace skiff::harness {
namespace {

void UpdateByAdam(UpdatedParameter& p, const AdamSettings& settings) {
  for (size_t i = 0; i < p.param.size(); ++i) p.param[i] -= p.rate * AdamStep(p, i, settings);
  AdvancePowers(p, settings);
}

UpdateCase Adam(const std::string& name, const AdamSettings& settings = {},
                const std::string& type = "adam") {
  return AdamCase(name, type, settings, {},
                  [settings](UpdatedParameter& p) { UpdateByAdam(p, settings); });
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
  cases.push_back(SparseWordsCase(Adam("bert")));
}

}  // namespace skiff::harness
