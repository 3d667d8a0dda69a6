#include <algorithm>
#include <cmath>
#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays LogitsCrossEntropyReference(const Arrays& inputs, int32_t ignored) {
  const Array& logits = inputs.at("Logits")[0];
  const std::vector<double>& labels = inputs.at("Label")[0].values;
  const int rank = logits.shape.rank();
  const auto classes = static_cast<size_t>(logits.shape[rank - 1]);
  Array loss = logits;
  loss.shape[rank - 1] = 1;
  loss.values.assign(labels.size(), 0.0);
  for (size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == ignored) continue;
    const double* x = logits.values.data() + row * classes;
    const double max = *std::max_element(x, x + classes);
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - max);
    loss.values[row] = std::log(sum) + max - x[static_cast<size_t>(labels[row])];
  }
  return {{"Loss", {loss}}};
}

OpCase LogitsCrossEntropyCase(const std::string& name, const Shape& logits, const Array& label,
                              int32_t ignored = -100) {
  OpCase result{
      .name = name,
      .type = "logits_cross_entropy",
      .inputs = {{"Logits", {Uniform(logits, 1, -3, 3)}}, {"Label", {label}}},
      .attrs = {{"ignore_index", ignored}},
      .reference =
          [=](const Arrays& inputs) { return LogitsCrossEntropyReference(inputs, ignored); },
      .outputs = {{"Loss", 1}}};
  if (logits.element_count() < 1000) result.gradients = {"Logits"};
  return result;
}

}  // namespace

void AddLogitsCrossEntropyCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& logits, const Array& label,
                       int32_t ignored = -100) {
    cases.push_back(LogitsCrossEntropyCase(name, logits, label, ignored));
  };
  add("rows", {6, 10}, Integers({6, 1}, 2, 0, 10));
  add("17_classes", {5, 17}, Integers({5, 1}, 3, 0, 17));
  add("int32", {6, 10}, Integers({6, 1}, 2, 0, 10, DType::kInt32));
  add("rank_3", {2, 3, 5}, Integers({2, 3, 1}, 4, 0, 5));
  add("vector_label", {6, 4}, Integers({6}, 5, 0, 4));
  add("one_class", {3, 1}, Integers({3, 1}, 5, 0, 1));
  add("one_row", {7}, Integers({1}, 5, 0, 7));
  add("ignored_class", {12, 3}, Integers({12, 1}, 6, 0, 3), 1);
  add("ignored_label", {4, 3}, Values({4, 1}, {0, -1, 2, -1}, DType::kInt64), -1);
  add("no_rows", {0, 5}, Integers({0, 1}, 7, 0, 5));
  add("no_classes_all_ignored", {3, 0}, Values({3, 1}, {-1, -1, -1}, DType::kInt64), -1);
  add("several_threads", {150, 301}, Integers({150, 1}, 8, 0, 301));
  add("long_rows", {3, 20001}, Integers({3, 1}, 9, 0, 20001));
  add("tokens_960x8000", {960, 8000}, Integers({960, 1}, 10, 0, 8000));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
