#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays LabelSmoothReference(const Arrays& inputs, double epsilon) {
  Array out = inputs.at("X")[0];
  const auto classes = static_cast<size_t>(out.shape.dim(-1));
  const bool has_prior = inputs.count("PriorDist") > 0;
  for (size_t i = 0; i < out.values.size(); ++i) {
    const double prior = has_prior ? inputs.at("PriorDist")[0].values[i % classes]
                                   : 1.0 / static_cast<double>(classes);
    out.values[i] = (1 - epsilon) * out.values[i] + epsilon * prior;
  }
  return {{"Out", {out}}};
}

OpCase LabelSmoothCase(const std::string& name, const Shape& shape, float epsilon) {
  OpCase result{
      .name = name,
      .type = "label_smooth",
      .inputs = {{"X", {Uniform(shape, 1, 0, 1)}}},
      .attrs = {{"epsilon", epsilon}},
      .reference =
          [epsilon](const Arrays& inputs) { return LabelSmoothReference(inputs, epsilon); },
      .outputs = {{"Out", 1}},
      .gradients = {"X"}};
  return result;
}

OpCase PriorCase(const std::string& name, const Shape& shape, const Shape& prior, float epsilon) {
  OpCase result = LabelSmoothCase(name, shape, epsilon);
  result.inputs["PriorDist"] = {Uniform(prior, 2, 0, 1)};
  return result;
}

}  // namespace

void AddLabelSmoothCases(CaseList& cases) {
  cases.push_back(LabelSmoothCase("uniform", {6, 5}, 0.1f));
  cases.push_back(LabelSmoothCase("uniform_vector", {17}, 0.1f));
  cases.push_back(LabelSmoothCase("uniform_rank_3", {2, 3, 7}, 0.3f));
  cases.push_back(LabelSmoothCase("uniform_alone", {2, 3}, 1));
  cases.push_back(LabelSmoothCase("no_rows", {0, 5}, 0.1f));
  cases.push_back(LabelSmoothCase("no_classes", {5, 0}, 0.1f));
  OpCase unchanged = LabelSmoothCase("no_epsilon", {6, 5}, 0);
  unchanged.attrs.clear();
  cases.push_back(std::move(unchanged));
  cases.push_back(PriorCase("prior", {6, 5}, {1, 5}, 0.1f));
  cases.push_back(PriorCase("prior_of_rank_1", {2, 3, 7}, {7}, 0.3f));
  cases.push_back(PriorCase("prior_without_rows", {0, 5}, {1, 5}, 0.1f));
  for (OpCase threads : {LabelSmoothCase("uniform_on_several_threads", {301, 257}, 0.1f),
                         PriorCase("prior_on_several_threads", {301, 257}, {1, 257}, 0.1f)}) {
    threads.gradients.clear();
    cases.push_back(std::move(threads));
  }
  OpCase large = LabelSmoothCase("4M_elements", {1024, 4096}, 0.1f);
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
