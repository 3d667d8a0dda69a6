#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Settings {
  double beta1 = 0.875;
  double beta2 = 0.96875;
  double epsilon = 0x1.0p-20;
  bool global_pow = false;
};

// The textbook's form: moments freed of their bias, then the quotient.
Arrays Adam(const Arrays& inputs, const Settings& settings) {
  const auto scalar = [&](const char* slot) { return inputs.at(slot)[0].values[0]; };
  Array param = inputs.at("Param")[0];
  Array moment1 = inputs.at("Moment1")[0];
  Array moment2 = inputs.at("Moment2")[0];
  Array pow1 = inputs.at("Beta1Pow")[0];
  Array pow2 = inputs.at("Beta2Pow")[0];
  const double beta1 = settings.beta1;
  const double beta2 = settings.beta2;
  for (size_t i = 0; i < param.values.size(); ++i) {
    const double g = inputs.at("Grad")[0].values[i];
    double& m = moment1.values[i];
    double& v = moment2.values[i];
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double unbiased_m = m / (1 - scalar("Beta1Pow"));
    const double unbiased_v = v / (1 - scalar("Beta2Pow"));
    param.values[i] -=
        scalar("LearningRate") * unbiased_m / (std::sqrt(unbiased_v) + settings.epsilon);
  }
  if (!settings.global_pow) {
    pow1.values[0] *= beta1;
    pow2.values[0] *= beta2;
  }
  return {{"ParamOut", {param}},
          {"Moment1Out", {moment1}},
          {"Moment2Out", {moment2}},
          {"Beta1PowOut", {pow1}},
          {"Beta2PowOut", {pow2}}};
}

Arrays Unchanged(const Arrays& inputs) {
  Arrays outputs;
  for (const char* slot : {"Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"}) {
    outputs[std::string(slot) + "Out"] = inputs.at(slot);
  }
  return outputs;
}

}  // namespace

void AddAdamCases(CaseList& cases) {
  // The settings are exact in float32, as the attributes are floats.
  const auto add = [&](const std::string& name, const Shape& shape, const Settings& settings) {
    OpCase made{.name = name,
                .type = "adam",
                .inputs = {{"Param", {Uniform(shape, 1)}},
                           {"Grad", {Uniform(shape, 2)}},
                           {"LearningRate", {Values({1}, {0.125}, DType::kFloat32)}},
                           {"Moment1", {Uniform(shape, 3)}},
                           {"Moment2", {Uniform(shape, 4, 0.01, 1.0)}},
                           {"Beta1Pow", {Values({1}, {0.765625})}},
                           {"Beta2Pow", {Values({1}, {0.9375})}}},
                .attrs = {{"beta1", static_cast<float>(settings.beta1)},
                          {"beta2", static_cast<float>(settings.beta2)},
                          {"epsilon", static_cast<float>(settings.epsilon)},
                          {"use_global_beta_pow", settings.global_pow}},
                .outputs = {{"ParamOut", 1},
                            {"Moment1Out", 1},
                            {"Moment2Out", 1},
                            {"Beta1PowOut", 1},
                            {"Beta2PowOut", 1}}};
    made.reference = [settings](const Arrays& inputs) { return Adam(inputs, settings); };
    cases.push_back(std::move(made));
  };
  add("matrix", {5, 7}, {});
  add("large_epsilon", {17}, {.epsilon = 0.5});
  add("global_powers", {3, 3}, {.global_pow = true});
  add("lazy_mode", {3, 3}, {});
  cases.back().attrs["lazy_mode"] = true;
  add("first_step", {16}, {});
  cases.back().inputs["Beta1Pow"] = {Values({1}, {0.875})};
  cases.back().inputs["Beta2Pow"] = {Values({1}, {0.96875})};
  add("scalar_powers", {4}, {});
  cases.back().inputs["Beta1Pow"] = {Values(Shape(), {0.765625})};
  cases.back().inputs["Beta2Pow"] = {Values(Shape(), {0.9375}, DType::kFloat32)};
  add("coefficients_from_tensors", {6, 2}, {.beta1 = 0.75, .beta2 = 0.875, .epsilon = 0.25});
  cases.back().attrs = {{"beta1", 0.5f}, {"beta2", 0.5f}, {"epsilon", 0.5f}};
  cases.back().inputs["Beta1Tensor"] = {Values({1}, {0.75}, DType::kFloat32)};
  cases.back().inputs["Beta2Tensor"] = {Values({1}, {0.875}, DType::kFloat32)};
  cases.back().inputs["EpsilonTensor"] = {Values({1}, {0.25})};
  add("skipped", {6, 2}, {});
  cases.back().inputs["SkipUpdate"] = {Values({1}, {1}, DType::kBool)};
  cases.back().reference = Unchanged;
  add("not_skipped", {6, 2}, {});
  cases.back().inputs["SkipUpdate"] = {Values({1}, {0}, DType::kBool)};
  add("empty", {0, 4}, {});
  add("several_threads", {131, 257}, {});
  add("bert_words", {30522, 768}, {});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
