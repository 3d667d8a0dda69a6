#include <cmath>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays LogLossReference(const Arrays& inputs, double epsilon) {
  const Array& p = inputs.at("Predicted")[0];
  Array loss = p;
  for (size_t i = 0; i < p.values.size(); ++i) {
    const double label = inputs.at("Labels")[0].values[i];
    loss.values[i] = -label * std::log(p.values[i] + epsilon) -
                     (1 - label) * std::log(1 - p.values[i] + epsilon);
  }
  return {{"Loss", {loss}}};
}

OpCase LogLossCase(const std::string& name, int64_t rows, Array labels, float epsilon) {
  OpCase result{
      .name = name,
      .type = "log_loss",
      .inputs = {{"Predicted", {Uniform({rows, 1}, 1, 0.05, 0.95)}},
                 {"Labels", {std::move(labels)}}},
      .attrs = {{"epsilon", epsilon}},
      .reference = [epsilon](const Arrays& inputs) { return LogLossReference(inputs, epsilon); },
      .outputs = {{"Loss", 1}},
      .gradients = {"Predicted"}};
  return result;
}

}  // namespace

void AddLogLossCases(CaseList& cases) {
  cases.push_back(LogLossCase("hard", 4, Values({4, 1}, {0, 1, 1, 0}), 1e-4f));
  cases.push_back(LogLossCase("soft", 37, Uniform({37, 1}, 2, 0, 1), 1e-4f));
  cases.push_back(LogLossCase("large_epsilon", 7, Uniform({7, 1}, 3, 0, 1), 0.25f));
  cases.push_back(LogLossCase("no_rows", 0, Uniform({0, 1}, 4, 0, 1), 1e-4f));
  OpCase threads = LogLossCase("several_threads", 9001, Uniform({9001, 1}, 5, 0, 1), 1e-4f);
  threads.gradients.clear();
  cases.push_back(std::move(threads));
}

}  // namespace skiff::harness
