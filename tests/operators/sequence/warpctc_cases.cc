#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

// A sequence: the probabilities of the classes in each step, and the labels.
struct CtcSequence {
  Rows probabilities;
  std::vector<size_t> labels;
  size_t blank;
};

std::vector<size_t> LabelsOfPath(const std::vector<size_t>& path, size_t blank) {
  std::vector<size_t> labels;
  for (size_t t = 0; t < path.size(); ++t) {
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

struct CtcSums {
  double all = 0;
  Rows of_class;  // for each step and class
};

// Adds up the probabilities of all paths that begin with `path` and have the labels.
void AddPaths(const CtcSequence& sequence, std::vector<size_t>* path, double probability,
              CtcSums* sums) {
  const size_t t = path->size();
  if (t == sequence.probabilities.size()) {
    if (LabelsOfPath(*path, sequence.blank) != sequence.labels) return;
    sums->all += probability;
    for (size_t i = 0; i < t; ++i) sums->of_class[i][(*path)[i]] += probability;
    return;
  }
  for (size_t c = 0; c < sequence.probabilities[t].size(); ++c) {
    path->push_back(c);
    AddPaths(sequence, path, probability * sequence.probabilities[t][c], sums);
    path->pop_back();
  }
}

double LogOfTwo(double a, double b) {
  const double most = std::max(a, b);
  return std::isinf(most) ? most : most + std::log(std::exp(a - most) + std::exp(b - most));
}

// The logarithm of the sum over all paths of a long sequence, by the first labels that the
// beginnings of paths have: those that end with a blank, and those that don't.
double LogOfLongSum(const CtcSequence& sequence) {
  const std::vector<size_t>& labels = sequence.labels;
  const double none = -std::numeric_limits<double>::infinity();
  std::vector<double> by_blank(labels.size() + 1, none);
  std::vector<double> by_label(labels.size() + 1, none);
  by_blank[0] = 0;
  for (const Row& probabilities : sequence.probabilities) {
    std::vector<double> blank_next = by_blank;
    std::vector<double> label_next = by_label;
    for (size_t n = 0; n <= labels.size(); ++n) {
      blank_next[n] = LogOfTwo(by_blank[n], by_label[n]) + std::log(probabilities[sequence.blank]);
      if (n == 0) continue;
      const bool repeats = n > 1 && labels[n - 1] == labels[n - 2];
      const double before = repeats ? by_blank[n - 1] : LogOfTwo(by_blank[n - 1], by_label[n - 1]);
      label_next[n] = LogOfTwo(by_label[n], before) + std::log(probabilities[labels[n - 1]]);
    }
    by_blank = blank_next;
    by_label = label_next;
  }
  return LogOfTwo(by_blank.back(), by_label.back());
}

Row SoftmaxOf(const Row& logits) {
  const double most = *std::ranges::max_element(logits);
  Row probabilities;
  double sum = 0;
  for (const double logit : logits) probabilities.push_back(std::exp(logit - most));
  for (const double value : probabilities) sum += value;
  for (double& value : probabilities) value /= sum;
  return probabilities;
}

std::vector<CtcSequence> CtcSequences(const Arrays& inputs, size_t blank) {
  const Array& logits = inputs.at("Logits")[0];
  const Array& label = inputs.at("Label")[0];
  std::vector<CtcSequence> sequences;
  if (!inputs.contains("LogitsLength")) {
    const std::vector<Rows> labels = SequencesOf(label);
    for (const Rows& rows : SequencesOf(logits)) {
      CtcSequence sequence{{}, {}, blank};
      for (const Row& row : rows) sequence.probabilities.push_back(SoftmaxOf(row));
      for (const Row& row : labels[sequences.size()])
        sequence.labels.push_back(static_cast<size_t>(row[0]));
      sequences.push_back(std::move(sequence));
    }
    return sequences;
  }
  const auto count = static_cast<size_t>(logits.shape[1]);
  const auto classes = static_cast<size_t>(logits.shape[2]);
  for (size_t i = 0; i < count; ++i) {
    CtcSequence sequence{{}, {}, blank};
    const auto steps = static_cast<size_t>(inputs.at("LogitsLength")[0].values[i]);
    for (size_t t = 0; t < steps; ++t) {
      const auto from = logits.values.begin() + static_cast<int64_t>((t * count + i) * classes);
      sequence.probabilities.push_back(SoftmaxOf(Row(from, from + static_cast<int64_t>(classes))));
    }
    const auto length = static_cast<size_t>(inputs.at("LabelLength")[0].values[i]);
    const auto width = static_cast<size_t>(label.shape[1]);
    for (size_t k = 0; k < length; ++k)
      sequence.labels.push_back(static_cast<size_t>(label.values[i * width + k]));
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// Sums over all paths.
Arrays WarpctcReference(const Arrays& inputs, size_t blank) {
  const std::vector<CtcSequence> sequences = CtcSequences(inputs, blank);
  size_t steps = 0;
  for (const CtcSequence& sequence : sequences)
    steps = std::max(steps, sequence.probabilities.size());
  const Shape& logits = inputs.at("Logits")[0].shape;
  if (logits.rank() == 3) steps = static_cast<size_t>(logits[0]);
  const auto classes = static_cast<size_t>(logits[logits.rank() - 1]);
  const auto count = sequences.size();
  std::vector<double> losses;
  std::vector<double> gradient(steps * count * classes, 0);
  for (size_t i = 0; i < count; ++i) {
    const Rows& probabilities = sequences[i].probabilities;
    CtcSums sums{0, Rows(probabilities.size(), Row(classes, 0))};
    std::vector<size_t> path;
    AddPaths(sequences[i], &path, 1, &sums);
    losses.push_back(sums.all == 0 ? 0 : -std::log(sums.all));
    if (sums.all == 0) continue;
    for (size_t t = 0; t < probabilities.size(); ++t) {
      for (size_t c = 0; c < classes; ++c)
        gradient[(t * count + i) * classes + c] =
            probabilities[t][c] - sums.of_class[t][c] / sums.all;
    }
  }
  const auto dim = [](size_t size) { return static_cast<int64_t>(size); };
  return {{"Loss", {Values({dim(count), 1}, losses)}},
          {"WarpCTCGrad", {Values({dim(steps), dim(count), dim(classes)}, gradient)}}};
}

Arrays LongWarpctcReference(const Arrays& inputs, size_t blank) {
  std::vector<double> losses;
  for (const CtcSequence& sequence : CtcSequences(inputs, blank))
    losses.push_back(-LogOfLongSum(sequence));
  const auto count = static_cast<int64_t>(losses.size());
  return {{"Loss", {Values({count, 1}, losses)}}};
}

OpCase WarpctcCase(const std::string& name, Arrays inputs, int32_t blank = 0,
                   bool is_long = false) {
  const auto blank_class = static_cast<size_t>(blank);
  return {.name = name,
          .type = "warpctc",
          .inputs = std::move(inputs),
          .attrs = {{"blank", blank}},
          .reference =
              [=](const Arrays& given) {
                return is_long ? LongWarpctcReference(given, blank_class)
                               : WarpctcReference(given, blank_class);
              },
          .outputs = {{"WarpCTCGrad", 1}, {"Loss", 1}},
          .gradients = {"Logits"},
          .loss_outputs = {"Loss"}};
}

Array CtcLabelArray(const Shape& shape, const std::vector<double>& labels,
                    DType dtype = DType::kInt32) {
  return Values(shape, labels, dtype);
}

Arrays PaddedCtc(Array logits, Array label, const std::vector<double>& steps,
                 const std::vector<double>& labels) {
  const Shape count = {static_cast<int64_t>(steps.size())};
  return {{"Logits", {std::move(logits)}},
          {"Label", {std::move(label)}},
          {"LogitsLength", {Values(count, steps, DType::kInt64)}},
          {"LabelLength", {Values(count, labels, DType::kInt64)}}};
}

Arrays RaggedCtc(Array logits, const std::vector<int64_t>& steps, Array label,
                 const std::vector<int64_t>& labels) {
  return {{"Logits", {Ragged(std::move(logits), steps)}},
          {"Label", {Ragged(std::move(label), labels)}}};
}

// Long sequences of large logits: the paths' probabilities are far below the smallest float.
OpCase LongWarpctcCase() {
  OpCase made = WarpctcCase("long_with_large_logits",
                            RaggedCtc(Uniform({1200, 5}, 11, -60, 60), {1000, 200},
                                      Integers({40, 1}, 12, 1, 5, DType::kInt32), {30, 10}),
                            0, /*is_long=*/true);
  // Finite differences of 6000 numbers take too long.
  made.gradients.clear();
  return made;
}

}  // namespace

void AddWarpctcCases(CaseList& cases) {
  const Array labels = CtcLabelArray({3, 3}, {1, 2, 2, 1, 3, 0, 3, 0, 0});
  cases.push_back(
      WarpctcCase("padded", PaddedCtc(Uniform({5, 3, 4}, 1, -2, 2), labels, {5, 5, 4}, {3, 2, 1})));
  cases.push_back(WarpctcCase(
      "norm_by_times", PaddedCtc(Uniform({5, 3, 4}, 2, -2, 2), labels, {5, 3, 4}, {3, 2, 1})));
  cases.back().attrs["norm_by_times"] = true;
  // It changes the gradient alone, which is then not that of Loss.
  cases.back().gradients.clear();
  cases.push_back(
      WarpctcCase("last_class_is_blank",
                  PaddedCtc(Uniform({4, 2, 3}, 3),
                            CtcLabelArray({2, 2}, {0, 1, 1, 1}, DType::kInt64), {4, 4}, {2, 2}),
                  2));
  cases.push_back(WarpctcCase(
      "blank_between",
      PaddedCtc(Uniform({4, 2, 4}, 4), CtcLabelArray({2, 2}, {0, 3, 2, 0}), {4, 3}, {2, 1}), 1));
  // More labels than steps, and equal labels without room for a blank between them.
  cases.push_back(
      WarpctcCase("impossible", PaddedCtc(Uniform({3, 3, 4}, 5), labels, {2, 3, 3}, {3, 2, 1})));
  cases.push_back(WarpctcCase(
      "no_room_for_blank",
      PaddedCtc(Uniform({3, 2, 3}, 6), CtcLabelArray({2, 2}, {1, 1, 2, 2}), {2, 3}, {2, 2})));
  cases.push_back(
      WarpctcCase("no_labels",
                  PaddedCtc(Uniform({4, 2, 3}, 7), CtcLabelArray({2, 1}, {0, 1}), {4, 3}, {0, 1})));
  cases.push_back(WarpctcCase(
      "no_steps",
      PaddedCtc(Uniform({2, 3, 3}, 8), CtcLabelArray({3, 1}, {0, 1, 2}), {0, 0, 2}, {0, 1, 1})));
  cases.push_back(
      WarpctcCase("ragged", RaggedCtc(Uniform({11, 4}, 9, -2, 2), {5, 2, 4},
                                      CtcLabelArray({6, 1}, {1, 2, 2, 3, 3, 1}), {3, 1, 2})));
  cases.push_back(WarpctcCase("ragged_without_rows",
                              RaggedCtc(Uniform({5, 3}, 10), {0, 4, 0, 1},
                                        CtcLabelArray({3, 1}, {1, 2, 2}), {0, 2, 1, 0})));
  cases.push_back(WarpctcCase(
      "ragged_int64",
      RaggedCtc(Uniform({4, 3}, 13), {3, 1}, CtcLabelArray({2, 1}, {0, 2}, DType::kInt64), {1, 1}),
      1));
  cases.push_back(WarpctcCase(
      "nothing", RaggedCtc(Uniform({0, 3}, 14), {0, 0}, CtcLabelArray({0, 1}, {}), {0, 0})));
  cases.push_back(WarpctcCase(
      "no_sequences", PaddedCtc(Uniform({3, 0, 3}, 15), CtcLabelArray({0, 2}, {}), {}, {})));
  cases.push_back(WarpctcCase(
      "one_class", PaddedCtc(Uniform({3, 1, 1}, 16), CtcLabelArray({1, 0}, {}), {3}, {0})));
  cases.push_back(
      WarpctcCase("many_sequences",
                  PaddedCtc(Uniform({3, 40, 3}, 17), Integers({40, 2}, 18, 1, 3, DType::kInt32),
                            std::vector<double>(40, 3), std::vector<double>(40, 2))));
  cases.push_back(LongWarpctcCase());
  OpCase large = WarpctcCase(
      "80_steps_of_64_lines",
      PaddedCtc(Uniform({80, 64, 97}, 19, -3, 3), Integers({64, 20}, 20, 1, 97, DType::kInt32),
                std::vector<double>(64, 80), std::vector<double>(64, 20)),
      0, /*is_long=*/true);
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
