#include <algorithm>
#include <cmath>
#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Settings {
  bool soft = false;
  int32_t ignored = -100;
  int32_t axis = -1;
  bool use_softmax = true;
  bool stable = true;
  bool skip_ignored = false;  // Softmax of ignored items is 0
};

Arrays SoftmaxWithCrossEntropyReference(const Arrays& inputs, const Settings& settings) {
  const Array& logits = inputs.at("Logits")[0];
  const Array& label = inputs.at("Label")[0];
  const int rank = logits.shape.rank();
  const int axis = (settings.axis + rank) % rank;
  const int64_t classes = logits.shape[axis];
  const int64_t outer = logits.shape.element_count(0, axis);
  const int64_t inner = logits.shape.element_count(axis + 1, rank);
  Array softmax = logits;
  Array loss = logits;
  loss.shape[axis] = 1;
  loss.values.assign(static_cast<size_t>(outer * inner), 0.0);
  for (int64_t item = 0; item < outer * inner; ++item) {
    const int64_t start = item / inner * classes * inner + item % inner;
    double max = -1e300;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      max = std::max(max, logits.values[static_cast<size_t>(start + c * inner)]);
    }
    for (int64_t c = 0; c < classes; ++c) {
      sum += std::exp(logits.values[static_cast<size_t>(start + c * inner)] - max);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const auto at = static_cast<size_t>(start + c * inner);
      const double x = logits.values[at];
      const double log_probability = settings.use_softmax ? x - max - std::log(sum) : std::log(x);
      if (settings.use_softmax) softmax.values[at] = std::exp(log_probability);
      if (settings.skip_ignored && label.values[static_cast<size_t>(item)] == settings.ignored) {
        softmax.values[at] = 0;
      }
      double weight = 0;
      if (settings.soft) {
        weight = label.values[at];
      } else {
        const auto hard = static_cast<int64_t>(label.values[static_cast<size_t>(item)]);
        weight = hard == c && hard != settings.ignored ? 1 : 0;
      }
      if (weight != 0) loss.values[static_cast<size_t>(item)] -= weight * log_probability;
    }
  }
  return {{"Softmax", {softmax}}, {"Loss", {loss}}};
}

OpCase SoftmaxWithCrossEntropyCase(const std::string& name, const Shape& shape, const Array& label,
                                   const Settings& settings = {}) {
  const double low = settings.use_softmax ? -3.0 : 0.1;
  const double high = settings.use_softmax ? 3.0 : 1.0;
  OpCase result{
      .name = name,
      .type = "softmax_with_cross_entropy",
      .inputs = {{"Logits", {Uniform(shape, 30, low, high)}}, {"Label", {label}}},
      .attrs = {{"soft_label", settings.soft},
                {"ignore_index", settings.ignored},
                {"axis", settings.axis},
                {"use_softmax", settings.use_softmax},
                {"numeric_stable_mode", settings.stable},
                {"skip_ignored", settings.skip_ignored}},
      .reference =
          [=](const Arrays& inputs) { return SoftmaxWithCrossEntropyReference(inputs, settings); },
      .outputs = {{"Softmax", 1}, {"Loss", 1}},
      .loss_outputs = {"Loss"},
      .accepted_wrong_inputs = {
          {"Softmax", "other dims", "nothing but Softmax tells the number of classes"}}};
  if (shape.element_count() < 1000) result.gradients = {"Logits"};
  return result;
}

void AddHardCases(CaseList& cases) {
  cases.push_back(SoftmaxWithCrossEntropyCase("hard", {6, 10}, Integers({6, 1}, 31, 0, 10)));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("hard_17_classes", {5, 17}, Integers({5, 1}, 32, 0, 17)));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("hard_1028_classes", {3, 1028}, Integers({3, 1}, 32, 0, 1028)));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_int32", {6, 10},
                                              Integers({6, 1}, 31, 0, 10, DType::kInt32)));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("hard_rank_3", {2, 3, 5}, Integers({2, 3, 1}, 33, 0, 5)));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("hard_vector_label", {6, 4}, Integers({6}, 34, 0, 4)));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_unstable_mode", {6, 4},
                                              Integers({6, 1}, 34, 0, 4), {.stable = false}));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_channels", {2, 3, 4, 5},
                                              Integers({2, 1, 4, 5}, 35, 0, 3), {.axis = 1}));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_first_axis", {4, 19},
                                              Integers({1, 19}, 36, 0, 4), {.axis = 0}));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_ignored_class", {12, 3},
                                              Integers({12, 1}, 37, 0, 3), {.ignored = 1}));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_ignored_label", {4, 3},
                                              Values({4, 1}, {0, -1, 2, -1}, DType::kInt64),
                                              {.ignored = -1}));
  // Runs of rows that count and of rows that don't, within a tile and beyond it.
  for (const bool skip : {false, true}) {
    Array labels = Integers({150, 1}, 44, 0, 6);
    for (size_t i = 0; i < 150; ++i) {
      if (i % 7 < 3 || i >= 140) labels.values[i] = -100;
    }
    const std::string name = skip ? "hard_skips_ignored" : "hard_many_ignored";
    cases.push_back(SoftmaxWithCrossEntropyCase(name, {150, 6}, labels, {.skip_ignored = skip}));
  }
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_probabilities", {6, 5},
                                              Integers({6, 1}, 38, 0, 5), {.use_softmax = false}));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_several_tiles", {150, 301},
                                              Integers({150, 1}, 39, 0, 301)));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("hard_long_rows", {3, 20001}, Integers({3, 1}, 40, 0, 20001)));
  cases.push_back(SoftmaxWithCrossEntropyCase("no_rows", {0, 5}, Integers({0, 1}, 41, 0, 5)));
  cases.push_back(SoftmaxWithCrossEntropyCase("hard_no_classes_all_ignored", {3, 0},
                                              Values({3, 1}, {-1, -1, -1}, DType::kInt64),
                                              {.ignored = -1}));
}

void AddSoftCases(CaseList& cases) {
  const auto weights = [](const Shape& shape) { return Uniform(shape, 42, 0.0, 1.0); };
  cases.push_back(SoftmaxWithCrossEntropyCase("soft", {6, 10}, weights({6, 10}), {.soft = true}));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("soft_17_classes", {5, 17}, weights({5, 17}), {.soft = true}));
  cases.push_back(SoftmaxWithCrossEntropyCase("soft_channels", {2, 3, 4, 5}, weights({2, 3, 4, 5}),
                                              {.soft = true, .axis = -3}));
  cases.push_back(SoftmaxWithCrossEntropyCase("soft_sum_to_one", {2, 3},
                                              Values({2, 3}, {0.125, 0.625, 0.25, 0.0, 0.5, 0.5}),
                                              {.soft = true}));
  cases.push_back(SoftmaxWithCrossEntropyCase("soft_probabilities", {6, 5}, weights({6, 5}),
                                              {.soft = true, .use_softmax = false}));
  cases.push_back(
      SoftmaxWithCrossEntropyCase("soft_no_classes", {3, 0}, weights({3, 0}), {.soft = true}));
  cases.push_back(SoftmaxWithCrossEntropyCase("soft_no_classes_of_columns", {2, 0, 3},
                                              weights({2, 0, 3}), {.soft = true, .axis = 1}));
  cases.push_back(SoftmaxWithCrossEntropyCase("soft_probabilities_no_classes", {3, 0},
                                              weights({3, 0}),
                                              {.soft = true, .use_softmax = false}));
}

}  // namespace

void AddSoftmaxWithCrossEntropyCases(CaseList& cases) {
  AddHardCases(cases);
  AddSoftCases(cases);
  OpCase language_model = SoftmaxWithCrossEntropyCase("vocabulary_256x30000", {256, 30000},
                                                      Integers({256, 1}, 43, 0, 30000));
  language_model.benchmark_only = true;
  cases.push_back(language_model);
  // The masked words of every position, of which 15 % have one.
  Array masked = Integers({2048, 1}, 43, 0, 8000);
  for (size_t i = 0; i < 2048; ++i) {
    if (i % 20 >= 3) masked.values[i] = -100;
  }
  OpCase masked_words = SoftmaxWithCrossEntropyCase("masked_words_2048x8000", {2048, 8000}, masked,
                                                    {.skip_ignored = true});
  masked_words.gradients = {"Logits"};
  masked_words.benchmark_only = true;
  cases.push_back(masked_words);
}

}  // namespace skiff::harness
