#include <limits>

#include "tests/operators/sequence/crf_reference.h"

namespace skiff::harness {
namespace {

double CrfLoss(const Rows& emission, const Rows& transition, const Rows& labels) {
  if (emission.empty()) return 0;
  Path path;
  for (const Row& label : labels) path.push_back(static_cast<size_t>(label[0]));
  return LogPartition(emission, transition) - ScoreOf(emission, transition, path);
}

// The probabilities of the tags, given the rows up to each.
Rows CrfAlpha(const Rows& emission, const Rows& transition) {
  Rows alpha;
  for (size_t k = 0; k < emission.size(); ++k) {
    const Rows begin(emission.begin(), emission.begin() + static_cast<int64_t>(k) + 1);
    Row row = CombinedScores(begin, transition, LogOfSum);
    const double norm = LogOfSum(row);
    for (double& value : row) value = std::exp(value - norm);
    alpha.push_back(row);
  }
  return alpha;
}

Array Powers(Array x, int64_t width) {
  for (size_t row = 0; width > 0 && row < x.values.size() / static_cast<size_t>(width); ++row) {
    double* values = x.values.data() + row * static_cast<size_t>(width);
    const double largest = *std::max_element(values, values + width);
    std::transform(values, values + width, values,
                   [=](double value) { return std::exp(value - largest); });
  }
  x.lod.clear();
  return x;
}

Arrays LinearChainCrfReference(const Arrays& inputs) {
  const Array& x = inputs.at("Emission")[0];
  const Rows transition = RowsOf(inputs.at("Transition")[0]);
  const Array* lengths = inputs.contains("Length") ? &inputs.at("Length")[0] : nullptr;
  const std::vector<Rows> emission = TaggedSequences(x, lengths);
  const std::vector<Rows> labels = TaggedSequences(inputs.at("Label")[0], lengths);
  std::vector<double> losses;
  std::vector<Rows> alpha;
  for (size_t i = 0; i < emission.size(); ++i) {
    losses.push_back(CrfLoss(emission[i], transition, labels[i]));
    // The recursion from the first row again for each row takes long.
    if (x.shape[0] < 200) alpha.push_back(CrfAlpha(emission[i], transition));
  }
  const auto count = static_cast<int64_t>(losses.size());
  Array transition_powers = inputs.at("Transition")[0];
  double largest = 0;
  for (double& value : transition_powers.values) {
    largest = std::max(largest, value);
    value = std::exp(value);
  }
  Arrays outputs = {
      {"LogLikelihood", {Values({count, 1}, losses)}},
      {"EmissionExps", {Powers(x, inputs.at("Transition")[0].shape[1])}},
  };
  if (x.shape[0] < 200) outputs["Alpha"] = {WithTaggedSequences(x, alpha, lengths != nullptr)};
  // A float32 can't hold the powers of larger ones.
  if (largest < 80) outputs["TransitionExps"] = {transition_powers};
  return outputs;
}

OpCase CrfCase(const std::string& name, Array emission, Array label, double largest = 1) {
  const int64_t tags = emission.shape[emission.shape.rank() - 1];
  return {
      .name = name,
      .type = "linear_chain_crf",
      .inputs = {{"Emission", {std::move(emission)}},
                 {"Transition", {Uniform({tags + 2, tags}, 3, -largest, largest)}},
                 {"Label", {std::move(label)}}},
      .attrs = {},
      .reference = LinearChainCrfReference,
      .outputs = {{"Alpha", 1}, {"EmissionExps", 1}, {"TransitionExps", 1}, {"LogLikelihood", 1}},
      .gradients = {"Emission", "Transition"}};
}

OpCase RaggedCrfCase(const std::string& name, const std::vector<int64_t>& lengths, int64_t tags,
                     double largest = 1) {
  const int64_t rows = Lengths{"", lengths}.rows();
  return CrfCase(name, Ragged(Uniform({rows, tags}, 1, -largest, largest), lengths),
                 Ragged(Integers({rows, 1}, 2, 0, tags), lengths), largest);
}

OpCase PaddedCrfCase(const std::string& name, const std::vector<double>& lengths, int64_t padded,
                     int64_t tags) {
  const auto count = static_cast<int64_t>(lengths.size());
  OpCase made =
      CrfCase(name, Uniform({count, padded, tags}, 4), Integers({count, padded}, 5, 0, tags));
  made.inputs["Length"] = {Values({count, 1}, lengths, DType::kInt64)};
  return made;
}

}  // namespace

void AddLinearChainCrfCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return RaggedCrfCase("", lengths.each, lengths.rows() > 1000 ? 57 : 3);
  });
  cases.push_back(RaggedCrfCase("one_tag", {2, 3}, 1));
  cases.push_back(RaggedCrfCase("more_sequences_than_parts", std::vector<int64_t>(37, 2), 2));
  // Scores whose powers overflow, and tags that are all but impossible.
  cases.push_back(RaggedCrfCase("large_scores", {12, 4}, 4, 100));
  cases.push_back(RaggedCrfCase("huge_scores", {6}, 3, 900));
  // What makes a tag of row 0 unlikely, the step behind it makes up for: products underflow.
  cases.push_back(RaggedCrfCase("steps_that_make_up", {2}, 2));
  cases.back().inputs["Emission"] = {Ragged(Values({2, 2}, {800.25, 0, 0, 0.5}), {2})};
  cases.back().inputs["Transition"] = {Values({4, 2}, {0, 0, 0, 0, -800, -800, 0, 0})};
  // Tag 1 comes neither first nor behind tag 2; no label has it there.
  cases.push_back(RaggedCrfCase("forbidden_steps", {3, 2}, 3));
  cases.back().inputs["Label"] = {Ragged(Values({5, 1}, {0, 1, 2, 2, 0}, DType::kInt64), {3, 2})};
  // Central differences at an infinity are none.
  cases.back().gradients = {"Emission"};
  for (const size_t place : {1, 13}) {
    cases.back().inputs["Transition"][0].values[place] = -std::numeric_limits<double>::infinity();
  }
  cases.push_back(RaggedCrfCase("long_with_large_scores", {250}, 3, 100));
  cases.back().gradients = {"Transition"};
  cases.push_back(PaddedCrfCase("padded", {2, 4, 1}, 4, 3));
  cases.push_back(PaddedCrfCase("padded_without_rows", {0, 3, 0}, 4, 3));
  cases.push_back(PaddedCrfCase("padded_without_sequences", {}, 4, 3));
  cases.push_back(PaddedCrfCase("padded_to_nothing", {0, 0}, 0, 3));
  cases.push_back(PaddedCrfCase("padded_columns", {2, 4, 1}, 4, 3));
  cases.back().inputs["Label"] = {Integers({3, 4, 1}, 6, 0, 3)};
  cases.back().inputs["Length"] = {Values({3}, {3, 0, 4}, DType::kInt64)};
}

}  // namespace skiff::harness
