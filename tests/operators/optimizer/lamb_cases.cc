#include "tests/operators/optimizer/adam_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct LambSettings {
  double decay = 0.0625;
  bool always_adapt = false;
};

void UpdateByLamb(UpdatedParameter& p, const LambSettings& settings) {
  std::vector<double> step;
  for (size_t i = 0; i < p.param.size(); ++i) {
    step.push_back(AdamStep(p, i, kCoarseAdam) + settings.decay * p.param[i]);
  }
  double ratio = 1;
  if (settings.decay > 0 || settings.always_adapt) {
    const double param_norm = NormOf(p.param);
    const double step_norm = NormOf(step);
    if (param_norm > 0 && step_norm > 0) ratio = param_norm / step_norm;
  }
  for (size_t i = 0; i < p.param.size(); ++i) p.param[i] -= p.rate * ratio * step[i];
  AdvancePowers(p, kCoarseAdam);
}

UpdateCase Lamb(const std::string& name, const LambSettings& settings = {}) {
  return AdamCase(name, "lamb", kCoarseAdam,
                  {{"weight_decay", static_cast<float>(settings.decay)},
                   {"always_adapt", settings.always_adapt}},
                  [settings](UpdatedParameter& p) { UpdateByLamb(p, settings); });
}

Array Zeros() { return Values({5, 7}, std::vector<double>(35, 0.0)); }

}  // namespace

void AddLambCases(CaseList& cases) {
  AddUpdateCases(cases, Lamb("plain"));
  AddSparseCases(cases, Lamb("plain"), false);
  cases.push_back(SparseCase(InBFloat16(Lamb("plain")), false, CrowdedSelectedRows()));
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
