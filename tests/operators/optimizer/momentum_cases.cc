#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Settings {
  double mu = 0.875;
  bool nesterov = false;
  double decay = 0;
  double rescale = 1;
};

Arrays Momentum(const Arrays& inputs, const Settings& settings) {
  Array param = inputs.at("Param")[0];
  Array velocity = inputs.at("Velocity")[0];
  const double rate = inputs.at("LearningRate")[0].values[0];
  for (size_t i = 0; i < param.values.size(); ++i) {
    double& p = param.values[i];
    double& v = velocity.values[i];
    const double g = inputs.at("Grad")[0].values[i] * settings.rescale + settings.decay * p;
    v = settings.mu * v + g;
    p -= rate * (settings.nesterov ? g + settings.mu * v : v);
  }
  return {{"ParamOut", {param}}, {"VelocityOut", {velocity}}};
}

}  // namespace

void AddMomentumCases(CaseList& cases) {
  // The settings are exact in float32, as the attributes are floats.
  const auto add = [&](const std::string& name, const Shape& shape, const Settings& settings) {
    OpCase made{.name = name,
                .type = "momentum",
                .inputs = {{"Param", {Uniform(shape, 1)}},
                           {"Grad", {Uniform(shape, 2)}},
                           {"Velocity", {Uniform(shape, 3)}},
                           {"LearningRate", {Values({1}, {0.125}, DType::kFloat32)}}},
                .attrs = {{"mu", static_cast<float>(settings.mu)},
                          {"use_nesterov", settings.nesterov},
                          {"rescale_grad", static_cast<float>(settings.rescale)}},
                .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}}};
    if (settings.decay != 0) {
      made.attrs["regularization_method"] = std::string("l2_decay");
      made.attrs["regularization_coeff"] = static_cast<float>(settings.decay);
    }
    made.reference = [settings](const Arrays& inputs) { return Momentum(inputs, settings); };
    cases.push_back(std::move(made));
  };
  add("plain", {5, 7}, {});
  add("nesterov", {5, 7}, {.nesterov = true});
  add("l2_decay", {17}, {.decay = 0.0625});
  add("nesterov_l2_decay_rescaled", {17}, {.nesterov = true, .decay = 0.0625, .rescale = 0.5});
  add("rescaled", {3, 3}, {.rescale = 0.5});
  add("empty", {0, 4}, {});
  add("several_threads", {131, 257}, {.nesterov = true, .decay = 0.0625});
  add("coefficient_without_method", {3, 3}, {});
  cases.back().attrs["regularization_coeff"] = 0.5f;
}

}  // namespace skiff::harness
