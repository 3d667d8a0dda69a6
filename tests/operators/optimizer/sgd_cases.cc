#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddSgdCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& shape, const Array& rate) {
    cases.push_back({.name = name,
                     .type = "sgd",
                     .inputs = {{"Param", {Uniform(shape, 1)}},
                                {"Grad", {Uniform(shape, 2)}},
                                {"LearningRate", {rate}}},
                     .reference =
                         [](const Arrays& inputs) {
                           Array param = inputs.at("Param")[0];
                           for (size_t i = 0; i < param.values.size(); ++i) {
                             param.values[i] -= inputs.at("LearningRate")[0].values[0] *
                                                inputs.at("Grad")[0].values[i];
                           }
                           return Arrays{{"ParamOut", {param}}};
                         },
                     .outputs = {{"ParamOut", 1}}});
  };
  add("matrix", {5, 7}, Values({1}, {0.25}));
  add("float32_rate", {17}, Values({1}, {0.25}, DType::kFloat32));
  add("scalar_rate", {3, 3, 2}, Values(Shape(), {0.125}));
  add("scalar_param", Shape(), Values({1}, {0.25}));
  add("empty", {0, 4}, Values({1}, {0.25}));
  add("several_threads", {131, 257}, Values({1}, {0.01}));
  add("bert_words", {30522, 768}, Values({1}, {0.01}));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
