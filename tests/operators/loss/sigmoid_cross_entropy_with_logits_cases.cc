#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays SigmoidCrossEntropyWithLogitsReference(const Arrays& inputs, bool normalize,
                                              double ignored) {
  const Array& x = inputs.at("X")[0];
  const Array& label = inputs.at("Label")[0];
  Array out = x;
  double counted = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double logit = x.values[i];
    const bool is_ignored = label.values[i] == ignored;
    const double weight = inputs.count("pos_weight") > 0 ? inputs.at("pos_weight")[0].values[i] : 1;
    counted += is_ignored ? 0 : 1;
    out.values[i] = is_ignored ? 0
                               : std::max(logit, 0.0) - logit * label.values[i] +
                                     weight * std::log(1 + std::exp(-std::abs(logit)));
  }
  for (double& value : out.values) value /= normalize ? std::max(counted, 1.0) : 1;
  return {{"Out", {out}}};
}

OpCase SigmoidCrossEntropyWithLogitsCase(const std::string& name, Array label,
                                         bool normalize = false, int32_t ignored = -100) {
  const Shape shape = label.shape;
  OpCase result{.name = name,
                .type = "sigmoid_cross_entropy_with_logits",
                .inputs = {{"X", {UniformAwayFrom(shape, 1, {0}, 0.01, -4, 4)}},
                           {"Label", {std::move(label)}}},
                .attrs = {{"normalize", normalize}, {"ignore_index", ignored}},
                .reference =
                    [=](const Arrays& inputs) {
                      return SigmoidCrossEntropyWithLogitsReference(inputs, normalize, ignored);
                    },
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
  return result;
}

// 0, 1 and, in every third element, the label that is ignored.
Array HardLabels(const Shape& shape, double ignored) {
  Array labels = Uniform(shape, 2, 0, 1);
  for (size_t i = 0; i < labels.values.size(); ++i) {
    labels.values[i] = i % 3 == 2 ? ignored : (labels.values[i] < 0.5 ? 0 : 1);
  }
  return labels;
}

}  // namespace

void AddSigmoidCrossEntropyWithLogitsCases(CaseList& cases) {
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("soft", Uniform({6, 5}, 3, 0.01, 0.99)));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("vector", Uniform({17}, 4, 0.01, 0.99)));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("rank_0", Uniform(Shape(), 5, 0.01, 0.99)));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("no_elements", Uniform({0, 5}, 6, 0.01, 0.99)));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("no_elements_normalized",
                                                    Uniform({0, 5}, 6, 0.01, 0.99), true));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("ignored", HardLabels({6, 5}, -100)));
  cases.push_back(
      SigmoidCrossEntropyWithLogitsCase("ignored_minus_one", HardLabels({3, 4, 5}, -1), false, -1));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("normalized", HardLabels({6, 5}, -100), true));
  cases.push_back(SigmoidCrossEntropyWithLogitsCase("normalized_minus_one",
                                                    HardLabels({3, 4, 5}, -1), true, -1));
  cases.push_back(
      SigmoidCrossEntropyWithLogitsCase("all_ignored", Values({2, 2}, {-1, -1, -1, -1}), true, -1));
  for (const bool normalize : {false, true}) {
    OpCase weighted = SigmoidCrossEntropyWithLogitsCase(
        normalize ? "weights_normalized" : "weights", HardLabels({6, 5}, -100), normalize);
    weighted.inputs["pos_weight"] = {Uniform({6, 5}, 7, 0, 3)};
    cases.push_back(std::move(weighted));
  }
  OpCase threads =
      SigmoidCrossEntropyWithLogitsCase("several_threads", HardLabels({301, 257}, -100), true);
  threads.gradients.clear();
  cases.push_back(std::move(threads));
  OpCase large =
      SigmoidCrossEntropyWithLogitsCase("1M_elements", Uniform({1024, 1024}, 8, 0.01, 0.99));
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
